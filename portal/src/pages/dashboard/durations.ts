const second = 1_000
const units = [
  { unit: 'day', millis: 24 * 60 * 60 * second },
  { unit: 'hour', millis: 60 * 60 * second },
  { unit: 'minute', millis: 60 * second },
  { unit: 'second', millis: second },
] as const

export type DurationUnit = (typeof units)[number]

/** The largest unit with at least two of it, so that all values in a chart share it. */
export const unitOf = (longest: number): DurationUnit =>
  units.find(({ millis }) => longest >= 2 * millis) ?? { unit: 'second', millis: second }

/** The number of units; null without a duration. */
export const amountOf = (lasted: number | undefined, { millis }: DurationUnit): number | null =>
  lasted === undefined ? null : lasted / millis

/** "2.5 hours", in the user's language. `amount` is in the unit. */
export function formatDuration(
  locale: string,
  amount: number,
  { unit }: DurationUnit,
  unitDisplay: 'short' | 'long',
): string {
  return new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay, maximumFractionDigits: 1 }).format(amount)
}
