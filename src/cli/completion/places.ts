import { type CommandDescription, type CommandTable, describeCommand } from '#cli/command-line/command-line.ts'

/** What can follow the words of a command, such as `gatehouse keys`. */
export interface CompletionPlace {
  readonly words: string
  /** Commands or actions, or values of the first argument. */
  readonly next: readonly CompletionWord[]
  readonly options: readonly CompletionOption[]
  /** An argument is a file or folder. */
  readonly takesFiles: boolean
}

export interface CompletionWord {
  readonly word: string
  readonly about: string
}

export interface CompletionOption extends CompletionWord {
  /** Absent for a flag. */
  readonly value?: { readonly choices: readonly string[]; readonly isFile: boolean } | undefined
}

/** The places of all commands, the program itself first. */
export async function completionPlaces(commands: CommandTable): Promise<readonly CompletionPlace[]> {
  const names = Object.entries(commands).map(([word, { about }]) => ({ word, about }))
  const described = await Promise.all(
    Object.values(commands).map(async (command) => placesOf(await describeCommand(await command.load()))),
  )
  const program: CompletionPlace = {
    words: 'gatehouse',
    next: names,
    options: [
      { word: '--help', about: 'Show help' },
      { word: '--version', about: 'Show the version' },
    ],
    takesFiles: false,
  }
  const places = described.flat().map((place) => (place.words === 'gatehouse help' ? { ...place, next: names } : place))
  for (const { words, next, options } of [program, ...places]) {
    for (const text of [words, ...[...next, ...options].map(({ word }) => word)]) checkSafe(text)
  }
  return [program, ...places]
}

function placesOf({ name, usage, arguments: names, options, actions }: CommandDescription): CompletionPlace[] {
  const place: CompletionPlace = {
    words: `gatehouse ${name}`,
    next:
      actions.length === 0
        ? alternatives(usage).map((word) => ({ word, about: '' }))
        : actions.map((action) => ({ word: action.name.slice(name.length + 1), about: firstLine(action.about) })),
    options: [
      ...options.map(({ name: option, value, choices = [], about }) => ({
        word: `--${option}`,
        about: firstLine(about),
        value: value === undefined ? undefined : { choices, isFile: isFile(value) },
      })),
      { word: '--help', about: 'Show help' },
    ],
    takesFiles: names.some((argument) => isFile(argument.replaceAll(/[[\]]/g, ''))),
  }
  return [place, ...actions.flatMap(placesOf)]
}

/** Of an argument such as `bash|zsh|fish`. */
const alternatives = ([usage = '']: readonly string[]): string[] =>
  (usage.split(' ').find((word) => /^[a-z]+(\|[a-z]+)+$/.test(word)) ?? '').split('|').filter((word) => word !== '')

/** By the names that the help uses. */
const isFile = (value: string): boolean => ['FILE', 'DIR', 'FOLDER', 'SOURCE'].includes(value)

const firstLine = (text: string): string => (text.split('\n', 1)[0] ?? '').replaceAll(/[\p{Cc}]/gu, ' ')

/** Words stand in scripts without quotes. */
function checkSafe(text: string): void {
  if (!/^[a-z -][a-z0-9 -]*$/.test(text)) throw new Error(`${JSON.stringify(text)} can't be a word of a command`)
}
