import type { Row, Table } from './report-table.ts'

/** A column by which rows can be counted. */
export interface ChartChoice {
  readonly column: number
  readonly name: string
  readonly kind: 'over-time' | 'by-value'
}

export interface ChartPoint {
  readonly label: string
  readonly count: number
}

const dayMillis = 24 * 60 * 60_000
/** More bars are unreadable. */
const maxBars = 20
const maxDays = 366

/** The columns that can be charted: times, and those with few repeated values. */
export function chartChoices({ columns, rows }: Table): readonly ChartChoice[] {
  if (rows.length < 2) return []
  return columns.flatMap(({ name, kind }, column): ChartChoice[] => {
    if (kind === 'dateTime') return daysOf(rows, column).length > 1 ? [{ column, name, kind: 'over-time' }] : []
    const values = new Set(present(rows, column))
    const comesAgain = values.size > 1 && values.size <= maxBars && values.size * 2 <= rows.length
    return comesAgain ? [{ column, name, kind: 'by-value' }] : []
  })
}

const present = (rows: readonly Row[], column: number): readonly string[] =>
  rows.flatMap((row) => {
    const value = row[column]
    return value === undefined || value === '' ? [] : [value]
  })

const dayOf = (dateTime: string): number => Math.floor(Date.parse(dateTime) / dayMillis)

const daysOf = (rows: readonly Row[], column: number): readonly number[] =>
  [...new Set(present(rows, column).map(dayOf))].sort((a, b) => a - b)

/** The number of rows for each value, most first, or for each day, including days without any. */
export function chartPoints(
  rows: readonly Row[],
  { column, kind }: ChartChoice,
  writeDay: (at: number) => string,
): readonly ChartPoint[] {
  if (kind === 'by-value') {
    const counts = Map.groupBy(present(rows, column), (value) => value)
    return [...counts].map(([label, all]) => ({ label, count: all.length })).sort((a, b) => b.count - a.count)
  }
  const counts = Map.groupBy(present(rows, column), dayOf)
  const days = daysOf(rows, column)
  const last = days.at(-1) ?? 0
  const first = Math.max(days[0] ?? 0, last - maxDays + 1)
  return Array.from({ length: last - first + 1 }, (_, i) => ({
    label: writeDay((first + i) * dayMillis),
    count: counts.get(first + i)?.length ?? 0,
  }))
}
