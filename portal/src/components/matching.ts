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

/** How well a label fits the query: 0 if equal, 1 if it starts with it, 2 if its words start with the query's, else 3. */
export const matchRank = (query: string, label: string): number => rank(folded(query.trim()), folded(label))

function rank(query: string, label: string): number {
  if (label === query) return 0
  if (label.startsWith(query)) return 1
  const words = label.split(/[^\p{L}\p{N}]+/u)
  return query.split(/\s+/).every((part) => words.some((word) => word.startsWith(part))) ? 2 : 3
}

/** The items, the best match first. Equal matches keep their order, and so does everything if the query is empty. */
export function sortByMatch<T extends { readonly label: string }>(query: string, items: readonly T[]): readonly T[] {
  const typed = folded(query.trim())
  if (typed === '') return items
  return items
    .map((item) => ({ item, rank: rank(typed, folded(item.label)) }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ item }) => item)
}
