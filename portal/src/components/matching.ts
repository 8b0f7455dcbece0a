/** Normalizes typed text for comparison: without case and accents. */
export const folded = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{Diacritic}/gu, '')
    .toLowerCase()

/** Whether the texts contain every word of the query. An empty query matches everything. */
export function matches(query: string, ...texts: readonly string[]): boolean {
  const all = folded(texts.join('\n'))
  return folded(query)
    .split(/\s+/)
    .every((word) => all.includes(word))
}
