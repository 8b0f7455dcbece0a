import process from 'node:process'
import { nearestName } from '#kernel/suggest.ts'
import { type Command, type CommandIo, commands } from '#server/commands/commands.ts'
import { findFilesByName } from '#server/find-files.ts'

const io: CommandIo = {
  stdout: (line) => process.stdout.write(`${line}\n`),
  stderr: (line) => process.stderr.write(`${line}\n`),
}

async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    printOverview(name === undefined ? io.stderr : io.stdout)
    return name === undefined ? 2 : 0
  }
  if (name === '--version') {
    io.stdout(process.env['npm_package_version'] ?? (await version()))
    return 0
  }
  const command: Command | undefined = commands[name]
  if (command === undefined) {
    const near = nearestName(name, Object.keys(commands))
    io.stderr(`gatehouse: no command "${name}"${near === undefined ? '' : ` (did you mean "${near}"?)`}`)
    printOverview(io.stderr)
    return 2
  }
  return (await command.load())(rest, io)
}

async function version(): Promise<string> {
  const { default: manifest } = await import('../../package.json', { with: { type: 'json' } })
  return manifest.version
}

function printOverview(print: (line: string) => void): void {
  print('Usage: gatehouse COMMAND [OPTIONS]')
  print('')
  const width = Math.max(...Object.keys(commands).map((name) => name.length))
  for (const [name, { about }] of Object.entries(commands)) print(`  ${name.padEnd(width)}  ${about}`)
  print('')
  print('Run gatehouse COMMAND --help for the options of a command.')
}

// A reader that has seen enough, such as `head`, ends a command; the gateway goes on without its output.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  if (process.argv[2] !== 'serve') process.exit()
})

findFilesByName()
process.exitCode = await main(process.argv.slice(2))
