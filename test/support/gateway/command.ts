import { Readable } from 'node:stream'
import type { RunCommand } from '#cli/command-line/command-line.ts'
import { commands } from '#cli/commands.ts'

export interface CommandResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs `gatehouse` with these arguments in the process of the test: a process of its own takes a second to start. A
 * command that asks for a password reads `input`.
 */
export async function runCommand(args: readonly string[], input?: string): Promise<CommandResult> {
  const [name = '', ...rest] = args
  const command = commands[name]
  if (command === undefined) throw new Error(`gatehouse has no command "${name}"`)
  const run = input === undefined ? await command.load() : await userCommandReading(input)
  let [stdout, stderr] = ['', '']
  const code = await run(rest, {
    stdout: (line) => (stdout += `${line}\n`),
    stderr: (line) => (stderr += `${line}\n`),
  })
  return { code, stdout, stderr }
}

/** Only this command reads passwords. Imported on demand, as the others are. */
async function userCommandReading(input: string): Promise<RunCommand> {
  const user = await import('#cli/commands/user.ts')
  return user.userCommandReading(Readable.from([input]))
}

/** What a command prints. Throws if it fails. */
export async function commandOutput(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(args)
  if (code !== 0) throw new Error(`gatehouse ${args.join(' ')} exited with ${code}:\n${stdout}${stderr}`)
  return stdout
}
