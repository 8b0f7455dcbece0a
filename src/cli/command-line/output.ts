/** Where a command prints, one line for each call; tests pass their own. */
export interface CommandIo {
  stdout(line: string): void
  stderr(line: string): void
}

/**
 * Prints lines without characters that move the cursor, change colors or reorder text: they may contain what others
 * wrote to a file or database. They are escaped as in JSON, so the meaning of JSON stays the same.
 */
export function plainIo({ stdout, stderr }: CommandIo): CommandIo {
  return { stdout: (line) => stdout(plainText(line)), stderr: (line) => stderr(plainText(line)) }
}

const plainText = (line: string): string =>
  line.replace(/(?!\t)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (found) =>
    Array.from({ length: found.length }, (_, i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  )

/** Prints a text of several lines. */
export function printText(text: string, io: Pick<CommandIo, 'stdout'>): void {
  for (const line of text.split('\n')) io.stdout(line)
}

/**
 * What an action prints. With `--output json`, standard output has one JSON document and nothing else: the result or the
 * list of the action, or else its lines of text as `messages`.
 */
export interface CommandOutput extends CommandIo {
  readonly isJson: boolean
  /** The document of `--output json`; once, and without effect otherwise. */
  result(document: unknown): void
  /**
   * Prints items as they come: as lines of text, or as a JSON array with an item per line. If there are none, standard
   * error says so, which programs that read the list don't get.
   */
  list<T>(items: AsyncIterable<T> | Iterable<T>, form: FiniteListForm<T>): Promise<void>
  /** Prints an item of a list without an end. With `--output json`, each is a document of its own. */
  item<T>(item: T, form: ListForm<T>): void
  /** Prints what only the end of the action shows. */
  end(): void
  /** Shows what was said before the action failed. */
  fail(): void
}

export interface ListForm<T> {
  lines(item: T): readonly string[]
  /** As it appears in JSON; the item itself if absent. */
  readonly json?: (item: T) => unknown
}

interface FiniteListForm<T> extends ListForm<T> {
  /** Plural, as in "There are no users." */
  readonly noun: string
  /** If one has a value, others may exist: "There are no users that match." */
  readonly filters?: object
  /** What explains an empty list. */
  readonly hint?: string | undefined
}

export function createOutput(io: CommandIo, isJson: boolean): CommandOutput {
  return isJson ? jsonOutput(io) : textOutput(io)
}

function reportEmpty(io: CommandIo, { noun, filters = {}, hint }: FiniteListForm<never>): void {
  const isFiltered = Object.values(filters).some((filter) => filter !== undefined)
  io.stderr(`There are no ${noun}${isFiltered ? ' that match' : ''}.${hint === undefined ? '' : ` ${hint}`}`)
}

function textOutput(io: CommandIo): CommandOutput {
  const item = <T>(one: T, { lines }: ListForm<T>): void => {
    for (const line of lines(one)) io.stdout(line)
  }
  return {
    isJson: false,
    stdout: (line) => io.stdout(line),
    stderr: (line) => io.stderr(line),
    result: () => {},
    item,
    list: async (items, form) => {
      let isEmpty = true
      for await (const one of items) {
        item(one, form)
        isEmpty = false
      }
      if (isEmpty) reportEmpty(io, form)
    },
    end: () => {},
    fail: () => {},
  }
}

const maxMessages = 10_000

function jsonOutput(io: CommandIo): CommandOutput {
  const messages: string[] = []
  let isPrinted = false
  const print = (text: string): void => {
    isPrinted = true
    printText(text, io)
  }
  return {
    isJson: true,
    stdout: (line) => {
      if (messages.length < maxMessages) messages.push(line)
    },
    stderr: (line) => io.stderr(line),
    result: (document) => print(JSON.stringify(document, null, 2)),
    item: (one, { json = (each) => each }) => print(JSON.stringify(json(one))),
    list: async (items, form) => {
      const { json = (each) => each } = form
      let last: string | undefined
      for await (const one of items) {
        if (last === undefined) print('[')
        else print(`${last},`)
        last = JSON.stringify(json(one))
      }
      if (last === undefined) {
        print('[]')
        reportEmpty(io, form)
      } else {
        print(last)
        print(']')
      }
    },
    end: () => {
      if (!isPrinted) print(JSON.stringify({ messages }, null, 2))
    },
    fail: () => {
      if (!isPrinted) for (const line of messages) io.stderr(line)
    },
  }
}
