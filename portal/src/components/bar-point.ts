/** The label and lengths of one bar of each series. */
export interface BarPoint {
  readonly label: string
  /** The value of a series, by its name. Null if the series has no value, not even 0. */
  readonly [name: string]: string | number | null
}

/** The value as text; a dash if there is none. */
export const valueText = (value: BarPoint[string] | undefined, written: (value: number) => string): string =>
  typeof value === 'number' ? written(value) : '–'

/** At most four even steps from 0 to the highest value or above; a step is 1, 2 or 5 times a power of ten. */
export function roundTicks(highest: number, isWhole: boolean): readonly number[] {
  const rough = highest / 4
  const power = 10 ** Math.floor(Math.log10(rough > 0 ? rough : 1))
  const round = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough) ?? rough
  const step = Math.max(isWhole ? 1 : 0.1, round)
  const count = Math.max(1, Math.ceil(highest / step))
  return Array.from({ length: count + 1 }, (_, i) => i * step)
}

/** The end of the longest bar: of all series together if they are stacked. */
export function highestValue(data: readonly BarPoint[], series: readonly string[], isStacked: boolean): number {
  const lengths = data.map((point) => series.map((name) => Number(point[name] ?? 0)))
  return Math.max(0, ...lengths.map((values) => (isStacked ? values.reduce((a, b) => a + b, 0) : Math.max(...values))))
}
