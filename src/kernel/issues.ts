/** A place in a document: keys and list positions from the document's root. */
export type Path = readonly (string | number)[]

export type IssueLevel = 'error' | 'warning'

export interface Issue {
  readonly level: IssueLevel
  readonly path: Path
  readonly message: string
  /** The document the path belongs to, as an opaque handle of the configuration source. */
  readonly document: object | undefined
}

/** Collects problems instead of throwing the first, so that a person can fix all of them at once. */
export class Issues {
  readonly list: Issue[]
  readonly #document: object | undefined

  constructor(document?: object, list: Issue[] = []) {
    this.#document = document
    this.list = list
  }

  /** A view that adds its issues to the same list, under another document. */
  for(document: object): Issues {
    return new Issues(document, this.list)
  }

  error(path: Path, message: string): void {
    this.list.push({ level: 'error', path, message, document: this.#document })
  }

  warning(path: Path, message: string): void {
    this.list.push({ level: 'warning', path, message, document: this.#document })
  }

  /** False after the first error; warnings do not count. */
  get ok(): boolean {
    return !this.list.some((issue) => issue.level === 'error')
  }
}
