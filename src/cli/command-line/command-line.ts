import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { plainLine } from '#config/context/located-issue.ts'
import { SchemaMismatch } from '#database/migrations.ts'
import { systemClock } from '#kernel/clock.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import { shownReason } from '#kernel/secret-values.ts'
import { suggestion } from '#kernel/suggest.ts'
import { parseTime } from '#kernel/time.ts'
import { type CommandIo, type CommandOutput, createOutput, plainIo, printText } from './output.ts'

export type { CommandIo, CommandOutput } from './output.ts'

/**
 * Resolves to the exit code: 0 success, 1 a problem was found or the command failed, 2 wrong usage, 3 the schema of
 * the database does not fit this version.
 */
export type RunCommand = (args: string[], io: CommandIo) => Promise<number>

export interface Command {
  readonly about: string
  /** Imported on demand: `check` does not load the server. */
  load(): Promise<RunCommand>
}

/** Commands by name. */
export type CommandTable = Readonly<Record<string, Command>>

interface Option {
  /** What follows the option, such as `FILE`; absent for a flag. */
  readonly value?: string
  readonly multiple?: true
  readonly default?: string
  /** All values that it accepts. */
  readonly choices?: readonly string[]
  readonly about: string
}

type Options = Readonly<Record<string, Option>>

/** The values of options: a flag is false, and an option that can be repeated an empty list, if it isn't given. */
export type Values<O extends Options> = {
  readonly [K in keyof O]: O[K] extends { readonly value: string }
    ? O[K] extends { readonly multiple: true }
      ? readonly string[]
      : O[K] extends { readonly default: string }
        ? string
        : string | undefined
    : boolean
}

interface Action<V> {
  /** The arguments and important options, as in the help. A second line shows another way to call it. */
  readonly usage: string
  /** The names of the arguments; the last one may be optional: `[FILE]`. */
  readonly arguments?: readonly string[]
  /** Throws WrongUsage before it opens anything. The exit code is 0 if it returns nothing. */
  run(values: V, args: readonly string[], io: CommandOutput): Promise<number> | Promise<void>
}

interface CommandBase<O extends Options> {
  /** Such as `keys` or `sts test`. */
  readonly name: string
  readonly about: string
  readonly options: O
  /** Printed after the options. */
  readonly notes?: string
  readonly examples: readonly string[]
  /** The message of an error, if it isn't for operators. */
  readonly describe?: (error: unknown) => string
}

/** A command with actions, such as `gatehouse mail list`. Any of them may be a command with options of its own. */
interface ActionCommand<O extends Options> extends CommandBase<O> {
  readonly actions: Readonly<
    Record<
      string,
      { readonly about: string } & (Action<Values<O>> | { readonly usage: string; readonly command: RunCommand })
    >
  >
}

type CommandSpec<O extends Options> = ActionCommand<O> | (CommandBase<O> & Action<Values<O>>)

/** An argument or option is wrong: the command exits with 2 and points to its help. */
export class WrongUsage extends Error {}

/** Reads the arguments, runs the action, and reports errors. `--help` prints the help. */
export function defineCommand<const O extends Options>(spec: CommandSpec<O>): RunCommand {
  return (args, given) => {
    const io = plainIo(given)
    const [word = ''] = args
    const action = 'actions' in spec && Object.hasOwn(spec.actions, word) ? spec.actions[word] : undefined
    if (action !== undefined && 'command' in action) return action.command(args.slice(1), io)
    return reportErrors(spec, io, async () => {
      if (args.includes('--help') || args.includes('-h')) {
        const chosen = action === undefined ? undefined : word
        if (asksForJson(args)) printText(JSON.stringify(await describe(spec), null, 2), io)
        else printText(helpOf(spec, chosen), io)
        return
      }
      if ('actions' in spec && !word.startsWith('-') && action === undefined)
        unknownAction(word, Object.keys(spec.actions))
      const { values, positionals } = readOptions(args, spec.options)
      const output = createOutput(io, 'output' in values && values.output === 'json')
      const lacksConfig = 'config' in spec.options && !('config' in values)
      const run = (): Promise<unknown> => {
        if (!('actions' in spec)) return spec.run(values, checkArguments(positionals, spec, lacksConfig), output)
        const [name = '', ...rest] = positionals
        const chosen = Object.hasOwn(spec.actions, name) ? spec.actions[name] : undefined
        if (chosen === undefined || 'command' in chosen) return unknownAction(name, Object.keys(spec.actions))
        return chosen.run(values, checkArguments(rest, chosen, lacksConfig), output)
      }
      try {
        const code = await run()
        output.end()
        return code
      } catch (error) {
        output.fail()
        throw error
      }
    })
  }
}

const asksForJson = (args: readonly string[]): boolean =>
  args.some((arg, i) => arg === '--output=json' || (arg === 'json' && args[i - 1] === '--output'))

/** A command as `--help --output json` prints it. */
export interface CommandDescription {
  readonly name: string
  readonly about: string
  readonly usage: readonly string[]
  readonly arguments: readonly string[]
  readonly options: readonly OptionDescription[]
  readonly actions: readonly CommandDescription[]
}

interface OptionDescription {
  readonly name: string
  readonly value?: string | undefined
  readonly choices?: readonly string[] | undefined
  readonly default?: string | undefined
  readonly about: string
}

/** What a command says of itself, and of its actions. */
export async function describeCommand(run: RunCommand): Promise<CommandDescription> {
  const lines: string[] = []
  await run(['--help', '--output', 'json'], { stdout: (line) => lines.push(line), stderr: () => {} })
  return JSON.parse(lines.join('\n'))
}

async function describe(spec: CommandSpec<Options>): Promise<CommandDescription> {
  const { name, about } = spec
  const options = describeOptions(spec.options)
  if (!('actions' in spec)) {
    return { name, about, usage: usagesOf(spec, [spec]), arguments: spec.arguments ?? [], options, actions: [] }
  }
  const actions = Object.entries(spec.actions).map(async ([word, action]) => {
    if ('command' in action) return describeCommand(action.command)
    return {
      name: `${name} ${word}`,
      about: action.about,
      usage: usagesOf(spec, [{ ...action, word }]),
      arguments: action.arguments ?? [],
      options: describeOptions(optionsOf(spec, word)),
      actions: [],
    }
  })
  const usage = usagesOf(
    spec,
    Object.entries(spec.actions).map(([word, action]) => ({ ...action, word })),
  )
  return { name, about, usage, arguments: [], options, actions: await Promise.all(actions) }
}

const describeOptions = (options: Options): OptionDescription[] =>
  Object.entries(options).map(([name, { value, choices, default: fallback, about }]) => ({
    name,
    value,
    choices,
    default: fallback,
    about,
  }))

/** The options of an action: those of a command may say for which actions they are, as in `list, show: …`. */
function optionsOf(spec: ActionCommand<Options>, action: string): Options {
  const entries = Object.entries(spec.options).flatMap(([name, option]): [string, Option][] => {
    const [, words = '', about = ''] = /^([a-z, -]+): (.*)$/s.exec(option.about) ?? []
    const named = words.split(', ')
    if (!named.every((word) => Object.hasOwn(spec.actions, word))) return [[name, option]]
    if (!named.includes(action)) return []
    return [[name, { ...option, about: `${about.slice(0, 1).toUpperCase()}${about.slice(1)}` }]]
  })
  return Object.fromEntries(entries)
}

const usagesOf = (
  { name }: Pick<CommandBase<Options>, 'name'>,
  actions: readonly { readonly word?: string; readonly usage: string }[],
): string[] =>
  actions.flatMap(({ word = '', usage }) =>
    usage.split('\n').map((each) => ['gatehouse', name, word, each].filter((part) => part !== '').join(' ')),
  )

function readOptions<O extends Options>(args: string[], options: O): { values: Values<O>; positionals: string[] } {
  const config = Object.entries(options).map(([name, { value, multiple = false, default: text }]) => [
    name,
    value === undefined
      ? { type: 'boolean' as const, default: false }
      : {
          type: 'string' as const,
          multiple,
          ...(multiple ? { default: [] } : text === undefined ? {} : { default: text }),
        },
  ])
  try {
    const { values, positionals } = parseArgs({ args, options: Object.fromEntries(config), allowPositionals: true })
    checkChoices(values, options)
    return { values: values as unknown as Values<O>, positionals }
  } catch (error) {
    if (error instanceof WrongUsage) throw error
    // Node.js adds advice about arguments that start with a dash, which no command accepts.
    const [reason = ''] = messageOf(error).split('. ', 1)
    const [, unknown] = /^Unknown option '(--.+)'$/.exec(reason) ?? []
    if (unknown === undefined) throw new WrongUsage(reason)
    const known = [...Object.keys(options), 'help'].map((name) => `--${name}`)
    throw new WrongUsage(`unknown option "${unknown}"${suggestion(unknown, known)}`)
  }
}

/** Throws WrongUsage. */
function checkChoices(values: Readonly<Record<string, unknown>>, options: Options): void {
  for (const [name, { choices }] of Object.entries(options)) {
    const value = values[name]
    if (choices === undefined || typeof value !== 'string' || choices.includes(value)) continue
    throw new WrongUsage(`--${name} must be one of ${choices.join(', ')}${suggestion(value, choices)}`)
  }
}

function checkArguments(
  given: readonly string[],
  { arguments: names = [] }: { readonly arguments?: readonly string[] },
  lacksConfig: boolean,
) {
  if (given.length > names.length) {
    const extra = given[names.length]
    const isConfig = lacksConfig && names.length === 0
    throw new WrongUsage(`unexpected argument "${extra}"${isConfig ? ` (did you mean "--config ${extra}"?)` : ''}`)
  }
  const needed = names.filter((name) => !name.startsWith('['))
  if (given.length < needed.length) throw new WrongUsage(`missing argument: ${needed.slice(given.length).join(' ')}`)
  return given
}

/** Throws WrongUsage, with a suggestion for a misspelled name. */
export function unknownAction(given: string, known: readonly string[]): never {
  if (given === '') throw new WrongUsage(`missing argument: one of ${known.join(', ')}`)
  throw new WrongUsage(`unknown action "${given}"${suggestion(given, known) || `; use ${known.join(', ')}`}`)
}

/** The help of a command, or of one of its actions. */
function helpOf(spec: CommandSpec<Options>, action: string | undefined): string {
  const all = 'actions' in spec ? spec.actions : {}
  const one = action === undefined ? undefined : all[action]
  const shown = one === undefined ? spec.options : optionsOf(spec as ActionCommand<Options>, action ?? '')
  const actions = Object.entries(all).map(([word, each]) => ({ ...each, word }))
  const chosen = one === undefined ? actions : [{ ...one, word: action ?? '' }]
  const options = Object.entries(shown).map(([name, { value, default: text, about }]): [string, string] => [
    value === undefined ? `--${name}` : `--${name} ${value}`,
    text === undefined ? about : `${about} (default ${text})`,
  ])
  return [
    one?.about ?? spec.about,
    `Usage:\n${usagesOf(spec, 'actions' in spec ? chosen : [spec])
      .map((usage) => `  ${usage}`)
      .join('\n')}`,
    ...('actions' in spec && one === undefined
      ? [`Actions:\n${columns(actions.map(({ word, about }) => [word, about]))}`]
      : []),
    ...(options.length === 0 ? [] : [`Options:\n${columns(options)}`]),
    ...(spec.notes === undefined ? [] : [spec.notes]),
    `Examples:\n${examplesOf(spec, action)
      .map((example) => `  ${example}`)
      .join('\n')}`,
  ].join('\n\n')
}

/** Those of an action, if there are any. */
function examplesOf({ name, examples }: CommandSpec<Options>, action: string | undefined): readonly string[] {
  const own = examples.filter((example) => example.startsWith(`gatehouse ${name} ${action} `))
  return own.length === 0 ? examples : own
}

/** The second column may have several lines. */
function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([first]) => first.length)) + 4
  return rows
    .map(([first, second]) => `  ${first}`.padEnd(width) + second.replaceAll('\n', `\n${' '.repeat(width)}`))
    .join('\n')
}

/** Runs an action and reports what it throws. Returns the exit code. */
async function reportErrors(
  { name, describe = messageOf }: Pick<CommandBase<Options>, 'name' | 'describe'>,
  io: CommandIo,
  action: () => Promise<unknown>,
): Promise<number> {
  const report = (line: string): void => io.stderr(terminalLine(`gatehouse ${name}: ${line}`, messageWidth))
  try {
    const code = await action()
    return typeof code === 'number' ? code : 0
  } catch (error) {
    if (error instanceof WrongUsage) {
      report(error.message)
      io.stderr(`Run "gatehouse ${name} --help" for usage.`)
      return 2
    }
    describe(error).split('\n').forEach(report)
    return error instanceof SchemaMismatch ? 3 : 1
  }
}

/** The command as the operator calls it. */
export function commandName(): string {
  const { npm_command: npm, GATEHOUSE_COMMAND: command } = process.env
  return npm === 'exec' ? 'npx gatehouse' : (command ?? 'gatehouse')
}

export const messageOf = shownReason

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

/** Throws WrongUsage that names the first option whose value can't be read. */
export function checkOptions(
  checks: Readonly<Record<string, () => unknown>>,
  describe: (error: unknown) => string = messageOf,
): void {
  for (const [option, read] of Object.entries(checks)) {
    try {
      read()
    } catch (error) {
      throw new WrongUsage(`--${option}: ${describe(error)}`)
    }
  }
}

/** The values of an option such as `--attribute NAME=VALUE`, by name. Throws WrongUsage. */
export function readPairs(option: string, texts: readonly string[]): Map<string, string[]> {
  const pairs = new Map<string, string[]>()
  for (const text of texts) {
    const end = text.indexOf('=')
    const name = text.slice(0, Math.max(end, 0))
    if (name === '' || isForbiddenKey(name)) throw new WrongUsage(`--${option} must be NAME=VALUE, not "${text}"`)
    pairs.set(name, [...(pairs.get(name) ?? []), text.slice(end + 1)])
  }
  return pairs
}

/** Throws WrongUsage. */
export function required(value: string | undefined, option: string): string {
  if (value === undefined) throw new WrongUsage(`--${option} is required`)
  return value
}

export const maxLimit = 100_000
export const pageSize = 500

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
export const operatorName = (by: string | undefined): string => by ?? `${systemUser()} (command line)`

/** The login of the system user; its number where the system has no name for it, as in a container with a random user. */
export function systemUser(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

/** The items of all pages, at most `limit`. */
export async function* listItems<T>(
  readPage: (
    limit: number,
    after: string | undefined,
  ) => Promise<{ readonly items: readonly T[]; readonly next?: string | undefined }>,
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<T> {
  let left = limit
  let after: string | undefined
  do {
    const page = await readPage(Math.min(pageSize, left), after)
    yield* page.items
    left -= page.items.length
    after = page.next
  } while (after !== undefined && left > 0)
}

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

/** Lines that are at most as long as the terminal is wide. */
export const fitted = (lines: readonly string[]): string[] => lines.map((line) => terminalLine(line, terminalWidth()))

export function printLines(lines: readonly string[], io: CommandIo): void {
  for (const line of fitted(lines)) io.stdout(line)
}

/** A line no longer than the terminal, without characters that move the cursor or change colors. */
export function terminalLine(text: string, width: number): string {
  const safe = plainLine(text)
  const most = Math.max(width, minWidth)
  return safe.length <= most ? safe : `${safe.slice(0, most - 1)}…`
}
