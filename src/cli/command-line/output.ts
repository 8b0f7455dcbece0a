/** Where a command prints; tests pass their own. */
export interface CommandIo {
  stdout(line: string): void
  stderr(line: string): void
}

/**
 * What an action prints. With `--output json`, standard output has one JSON document and nothing else: the result or the
 * list of the action, or else its lines of text as `messages`.
 */
export interface CommandOutput extends CommandIo {
  readonly isJson: boolean
  /** The document of `--output json`; once, and without effect otherwise. */
  result(document: unknown): void
  /** Prints items as they come: as lines of text, or as a JSON array with an item per line. Returns their number. */
  list<T>(items: AsyncIterable<T> | Iterable<T>, form: ListForm<T>): Promise<number>
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

export function createOutput(io: CommandIo, isJson: boolean): CommandOutput {
  return isJson ? jsonOutput(io) : textOutput(io)
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
      let count = 0
      for await (const one of items) {
        item(one, form)
        count++
      }
      return count
    },
    end: () => {},
    fail: () => {},
  }
}

const maxMessages = 10_000

/** JSON without characters that move the cursor, change colors or reorder text where it is read on a terminal. */
const safeJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (found) =>
    Array.from({ length: found.length }, (_, i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  )

function jsonOutput(io: CommandIo): CommandOutput {
  const messages: string[] = []
  let isPrinted = false
  const print = (text: string): void => {
    isPrinted = true
    io.stdout(text)
  }
  return {
    isJson: true,
    stdout: (line) => {
      if (messages.length < maxMessages) messages.push(line)
    },
    stderr: (line) => io.stderr(line),
    result: (document) => print(safeJson(document, 2)),
    item: (one, { json = (each) => each }) => print(safeJson(json(one))),
    list: async (items, { json = (each) => each }) => {
      let count = 0
      let last: string | undefined
      for await (const one of items) {
        if (last === undefined) print('[')
        else print(`${last},`)
        last = safeJson(json(one))
        count++
      }
      if (last === undefined) print('[]')
      else {
        print(last)
        print(']')
      }
      return count
    },
    end: () => {
      if (!isPrinted) print(safeJson({ messages }, 2))
    },
    fail: () => {
      if (!isPrinted) for (const line of messages) io.stderr(line)
    },
  }
}
