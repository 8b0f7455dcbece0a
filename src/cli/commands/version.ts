import { defineCommand } from '#cli/command-line/command-line.ts'
import { outputOption } from '#cli/command-line/options.ts'
import { programVersions } from '#cli/command-line/program-versions.ts'

export const versionCommand = defineCommand({
  name: 'version',
  about: 'Show the versions of Gatehouse and of what it runs on. "gatehouse --version" prints the first one only.',
  usage: '[options]',
  options: outputOption,
  examples: ['gatehouse version', 'gatehouse version --output json'],
  run: async (_, __, io) => {
    const versions = await programVersions()
    const { gatehouse, commit = 'unknown', node, sqlite = 'none', openssl = 'none', system } = versions
    io.stdout(`Gatehouse  ${gatehouse}`)
    io.stdout(`Commit     ${commit}`)
    io.stdout(`Node.js    ${node}`)
    io.stdout(`SQLite     ${sqlite}`)
    io.stdout(`OpenSSL    ${openssl}`)
    io.stdout(`System     ${system}`)
    io.result(versions)
  },
})
