/** What would happen, in the order in which it is decided. */
export interface Explanation {
  readonly allowed: boolean
  readonly details: readonly Detail[]
}

export interface Detail {
  /** Such as `rule`. */
  readonly about: string
  readonly text: string
  readonly more?: readonly string[] | undefined
}

/** For people: what each detail is about in a column of its own. */
export const detailLines = (details: readonly Detail[]): string[] =>
  details.flatMap(({ about, text, more = [] }) => [
    `${about.padEnd(13)}${text}`,
    ...more.map((one) => `${' '.repeat(13)}${one}`),
  ])
