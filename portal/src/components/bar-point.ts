/** What one bar of each series is about, and how long it is. */
export interface BarPoint {
  readonly label: string
  /** Of a series, by its name. Null where there is nothing that could be 0. */
  readonly [name: string]: string | number | null
}

/** The value in words; a dash where there is none. */
export const valueText = (value: BarPoint[string] | undefined, written: (value: number) => string): string =>
  typeof value === 'number' ? written(value) : '–'
