import { type ResolveFnOutput, registerHooks } from 'node:module'
import process from 'node:process'
import { suggestion } from '#kernel/suggest.ts'
import type { CommandIo } from '#server/commands/command-line.ts'
import { type Command, commands } from '#server/commands/commands.ts'

const sources = new URL('..', import.meta.url).href

/** Libraries of many small files, all of them ES modules. */
const libraries = /\/node_modules\/(?:zod|jose\/dist\/webapi)\//

/**
 * At start, the gateway's files and those of some libraries import each other thousands of times, and Node.js reads
 * package.json and the disk each time. The location of such a file follows from its name alone, which saves a
 * quarter of the startup time.
 */
function findFilesByName(): void {
  const packages = new Map<string, ResolveFnOutput>()
  registerHooks({
    resolve(specifier, context, next) {
      const { parentURL = '' } = context
      const file = fileNamed(specifier, parentURL)
      if (file !== undefined) return { ...file, shortCircuit: true }
      // All of our files import the same copy of a package.
      const isPackage = /^(?!node:)[a-z@]/.test(specifier) && context.conditions.includes('import')
      if (!isPackage || !parentURL.startsWith(sources)) return next(specifier, context)
      const found = packages.get(specifier) ?? { ...next(specifier, context), shortCircuit: true }
      packages.set(specifier, found)
      return found
    },
  })
}

/** Undefined for files that have to be looked up. */
export function fileNamed(specifier: string, parentURL: string): { url: string; format: string } | undefined {
  if (specifier.endsWith('.ts') && parentURL.startsWith(sources)) {
    const url = specifier.startsWith('#') ? sources + specifier.slice(1) : new URL(specifier, parentURL).href
    return { url, format: 'module-typescript' }
  }
  if (/^\.\.?\/.*\.js$/.test(specifier) && libraries.test(parentURL)) {
    return { url: new URL(specifier, parentURL).href, format: 'module' }
  }
  return undefined
}

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
    const { version } = await import('#server/version.ts')
    io.stdout(await version())
    return 0
  }
  const command: Command | undefined = commands[name]
  if (command === undefined) {
    io.stderr(`gatehouse: unknown command "${name}"${suggestion(name, Object.keys(commands))}`)
    io.stderr('Run "gatehouse --help" for usage.')
    return 2
  }
  return (await command.load())(rest, io)
}

function printOverview(print: (line: string) => void): void {
  const width = Math.max(...Object.keys(commands).map((name) => name.length))
  print('Gatehouse is an identity portal gateway.')
  print('')
  print('Usage:')
  print('  gatehouse COMMAND [options]')
  print('')
  print('Commands:')
  for (const [name, { about }] of Object.entries(commands)) print(`  ${name.padEnd(width)}  ${about}`)
  print('')
  print('Options:')
  print('  --help     Show help, also of a command')
  print('  --version  Show the version')
}

// A reader that closes the pipe early, such as `head`, ends a command. The gateway continues without its output.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  if (process.argv[2] !== 'serve') process.exit()
})

findFilesByName()
process.exitCode = await main(process.argv.slice(2))
