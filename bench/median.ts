/** The median; of an even number of values the greater of the two in the middle, and 0 of none. */
export const median = (values: readonly number[]): number => percentile(values, 0.5)

/** The value below which this share of the values lies, 0 of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
