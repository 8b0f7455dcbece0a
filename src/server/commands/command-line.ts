import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import process from 'node:process'
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { systemClock } from '#kernel/clock.ts'
import { suggestion } from '#kernel/suggest.ts'
import { parseTime } from '#kernel/time.ts'

/** The output of a command; tests pass their own. */
export interface CommandIo {
  stdout(line: string): void
  stderr(line: string): void
}

/** Resolves to the exit code: 0 success, 1 a problem was found or the command failed, 2 wrong usage. */
export type RunCommand = (args: string[], io: CommandIo) => Promise<number>

interface CommandLine<O extends ParseArgsOptionsConfig> {
  /** The name of the command, such as `keys` or `sts test`. */
  readonly command: string
  /** What `--help` prints. */
  readonly usage: string
  readonly options: O
  readonly positionals: number
  /** The names of the arguments in the usage, in order. */
  readonly names?: readonly string[]
}

/** An argument or option is wrong: the command exits with 2 and points to its help. */
export class WrongUsage extends Error {}

/** Reads the arguments of a command. Returns an exit code after `--help` and after wrong usage, which it reports. */
export function readArguments<const O extends ParseArgsOptionsConfig>(
  args: string[],
  line: CommandLine<O>,
  io: CommandIo,
) {
  if (args.includes('--help') || args.includes('-h')) {
    io.stdout(line.usage)
    return { exit: 0 } as const
  }
  try {
    const { values, positionals } = parseArgs({ args, options: line.options, allowPositionals: true })
    if (positionals.length !== line.positionals) throw new Error(wrongCount(positionals, line))
    return { values, positionals } as const
  } catch (error) {
    return { exit: wrongUsage(line.command, firstSentence(messageOf(error)), io) } as const
  }
}

/** Prints the problem and where to find help. Returns the exit code. */
export function wrongUsage(command: string, problem: string, io: CommandIo): 2 {
  io.stderr(terminalLine(`gatehouse ${command}: ${problem}`, messageWidth))
  io.stderr(`Run "gatehouse ${command} --help" for usage.`)
  return 2
}

/** Runs an action and reports what it throws. Returns the exit code. */
export async function runAction(
  command: string,
  io: CommandIo,
  action: () => Promise<number>,
  describe: (error: unknown) => string = messageOf,
): Promise<number> {
  try {
    return await action()
  } catch (error) {
    if (error instanceof WrongUsage) return wrongUsage(command, error.message, io)
    for (const line of describe(error).split('\n')) {
      io.stderr(terminalLine(`gatehouse ${command}: ${line}`, messageWidth))
    }
    return 1
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Throws WrongUsage, with a suggestion for a misspelled name. */
export function unknownAction(given: string, known: readonly string[]): never {
  if (given === '') throw new WrongUsage(`missing argument: one of ${known.join(', ')}`)
  throw new WrongUsage(`unknown action "${given}"${suggestion(given, known) || `; use ${known.join(', ')}`}`)
}

/** Throws an Error if the file does not exist. */
export function checkFile(file: string): void {
  if (!existsSync(file)) throw new Error(`${file} does not exist`)
}

/** Why a file could not be read, for the operator who named it. */
export function fileProblem(file: string, error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return `${file} does not exist`
  if (code === 'EISDIR') return `${file} is a folder, not a file`
  if (code === 'EACCES') return `${file} cannot be read: permission denied`
  return `${file} cannot be read: ${messageOf(error)}`
}

/** Checks the values of options in order. Returns the problem with the first one that fails. */
export function firstWrong(
  checks: readonly (readonly [option: string, read: () => unknown])[],
  describe: (error: unknown) => string = messageOf,
): string | undefined {
  for (const [option, read] of checks) {
    try {
      read()
    } catch (error) {
      return `${option}: ${describe(error)}`
    }
  }
  return undefined
}

/** Throws WrongUsage. */
export function required(value: string | undefined, option: string): string {
  if (value === undefined) throw new WrongUsage(`--${option} is required`)
  return value
}

export const maxLimit = 100_000

/** The value of `--limit`. Throws WrongUsage. */
export function readLimit(text: string): number {
  const limit = wholeNumber(text, 1, maxLimit)
  if (limit === undefined) throw new WrongUsage(`--limit must be a whole number from 1 to ${maxLimit}`)
  return limit
}

/** A time such as `7d` (ago), or an ISO 8601 date. Throws WrongUsage. */
export function readTime(option: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined
  const time = parseTime(text, systemClock())
  if (time !== undefined) return time
  throw new WrongUsage(`--${option} must be a time such as 90s, 15m, 1h or 7d (ago), or an ISO 8601 date`)
}

/** The operator in the audit: the value of `--by`, otherwise the system user. */
export const operatorName = (by: string | undefined): string => by ?? `${userInfo().username} (command line)`

/** Undefined for anything but a whole number from `min` to `max`. */
export function wholeNumber(text: string, min: number, max: number): number | undefined {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  return number >= min && number <= max ? number : undefined
}

const minWidth = 40
/** For pipes and files, where lines stay whole. */
const pipeWidth = 4_000
const messageWidth = 1_000

export const terminalWidth = (): number => process.stdout.columns ?? pipeWidth

/** A line no longer than the terminal, without characters that move the cursor or change colors. */
export function terminalLine(text: string, width: number): string {
  const safe = text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '\ufffd')
  const most = Math.max(width, minWidth)
  return safe.length <= most ? safe : `${safe.slice(0, most - 1)}…`
}

/** Node.js adds advice about arguments that start with a dash, which no command accepts. */
const firstSentence = (message: string): string => message.split('. ', 1)[0] ?? message

function wrongCount(
  given: readonly string[],
  { positionals: wanted, names }: { readonly positionals: number; readonly names?: readonly string[] },
): string {
  if (given.length > wanted) return `unexpected argument "${given[wanted]}"`
  if (names !== undefined) return `missing argument: ${names.slice(given.length).join(' ')}`
  return `${wanted - given.length} more argument${wanted - given.length === 1 ? '' : 's'} required`
}
