import { existsSync } from 'node:fs'
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import type { CommandIo } from '#server/commands/commands.ts'

interface Usage<O extends ParseArgsOptionsConfig> {
  /** The command line, as `--help` prints it. */
  readonly usage: string
  readonly options: O
  readonly positionals: number
  /** What the arguments are called in the usage, in their order. */
  readonly names?: readonly string[]
}

/**
 * Reads a command's arguments. Undefined when it has nothing to do but end: with exit code 0 after `--help`, with 2
 * after wrong usage, which is printed to stderr.
 */
export function readArguments<const O extends ParseArgsOptionsConfig>(args: string[], usage: Usage<O>, io: CommandIo) {
  try {
    if (args.includes('--help') || args.includes('-h')) {
      io.stdout(usage.usage)
      return { exit: 0 } as const
    }
    const { values, positionals } = parseArgs({ args, options: usage.options, allowPositionals: true })
    if (positionals.length !== usage.positionals) throw new Error(wrongCount(positionals, usage))
    return { values, positionals } as const
  } catch (error) {
    io.stderr(`gatehouse: ${firstSentence(error instanceof Error ? error.message : String(error))}`)
    io.stderr(usage.usage)
    return { exit: 2 } as const
  }
}

/** Throws an Error where there is no such file. */
export function checkFile(file: string): void {
  if (!existsSync(file)) throw new Error(`${file} does not exist`)
}

/** Why a file could not be read, for the person who named it. */
export function fileProblem(file: string, error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return `${file} does not exist`
  if (code === 'EISDIR') return `${file} is a folder, not a file`
  if (code === 'EACCES') return `${file} cannot be read: permission denied`
  return `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`
}

/** Checks the values of options in turn, and returns what is wrong with the first that does not pass. */
export function firstWrong(
  checks: readonly (readonly [option: string, read: () => unknown])[],
  reasonOf: (error: unknown) => string = (error) => (error instanceof Error ? error.message : String(error)),
): string | undefined {
  for (const [option, read] of checks) {
    try {
      read()
    } catch (error) {
      return `${option}: ${reasonOf(error)}`
    }
  }
  return undefined
}

/** Node.js continues with arguments that start with a dash, which no command takes. */
const firstSentence = (message: string): string => message.split('. ', 1)[0] ?? message

function wrongCount(
  given: readonly string[],
  { positionals: wanted, names }: { readonly positionals: number; readonly names?: readonly string[] },
): string {
  if (names !== undefined && given.length < wanted) return `missing argument: ${names.slice(given.length).join(' ')}`
  if (given.length > wanted) return `unexpected argument "${given[wanted]}"`
  return `${wanted - given.length} more argument${wanted - given.length === 1 ? '' : 's'} needed`
}
