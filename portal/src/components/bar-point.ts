/** The label and lengths of one bar of each series. */
export interface BarPoint {
  readonly label: string
  /** The value of a series, by its name. Null if the series has no value, not even 0. */
  readonly [name: string]: string | number | null
}

/** The value as text; a dash if there is none. */
export const valueText = (value: BarPoint[string] | undefined, written: (value: number) => string): string =>
  typeof value === 'number' ? written(value) : '–'
