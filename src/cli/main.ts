import process from 'node:process'
import type { CommandIo } from '#cli/command-line/command-line.ts'
import { suggestion } from '#kernel/suggest.ts'
import { type Command, commands } from './commands.ts'

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
    const { version } = await import('#kernel/version.ts')
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

/** As of other programs: 128 and the number of SIGPIPE. */
const pipeClosed = 141

// A reader that closes the pipe early, such as `head`, ends a command: it must not look finished. The gateway continues
// without its output.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    if (process.argv[2] !== 'serve') process.exit(pipeClosed)
  })
}

process.exitCode = await main(process.argv.slice(2))
