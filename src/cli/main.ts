import process from 'node:process'
import { plainIo } from '#cli/command-line/output.ts'
import { overview } from '#cli/commands/help.ts'
import { suggestion } from '#kernel/suggest.ts'
import { type Command, commands } from './commands.ts'

const io = plainIo({
  stdout: (line) => process.stdout.write(`${line}\n`),
  stderr: (line) => process.stderr.write(`${line}\n`),
})

async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args
  if (name === undefined || name === '--help' || name === '-h') {
    for (const line of overview(commands)) (name === undefined ? io.stderr : io.stdout)(line)
    return name === undefined ? 2 : 0
  }
  if (name === '--version' || name === '-v') {
    const { version } = await import('#kernel/version.ts')
    io.stdout(await version())
    return 0
  }
  const command: Command | undefined = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command === undefined) {
    io.stderr(`gatehouse: unknown command "${name}"${suggestion(name, Object.keys(commands))}`)
    io.stderr('Run "gatehouse --help" for usage.')
    return 2
  }
  return (await command.load())(rest, io)
}

/** As of other programs: 128 and the number of SIGPIPE. */
const pipeClosed = 141

// A reader that closes the pipe early, such as `head`, ends a command: it must not look finished. The gateway continues
// without its output.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (process.argv[2] === 'serve') return
    if (error.code === 'EPIPE') process.exit(pipeClosed)
    if (stream === process.stdout) io.stderr(`gatehouse: standard output cannot be written: ${error.message}`)
    process.exit(1)
  })
}

process.exitCode = await main(process.argv.slice(2))
