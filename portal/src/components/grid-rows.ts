/** Items of a group, below a heading if it has one. */
export interface ItemGroup<T> {
  readonly key: string
  readonly heading?: string
  readonly items: readonly T[]
}

export type GridRow<T> =
  | { readonly kind: 'heading'; readonly key: string; readonly heading: string; readonly count: number }
  | { readonly kind: 'items'; readonly key: string; readonly items: readonly T[] }

/** The number of columns of at least `minWidth` that fit. */
export const columnsFor = (width: number, minWidth: number | undefined, gap: number): number =>
  minWidth === undefined ? 1 : Math.max(1, Math.floor((width + gap) / (minWidth + gap)))

/** Groups as rows with this many columns; empty groups are left out. */
export function rowsOf<T>(groups: readonly ItemGroup<T>[], columns: number): readonly GridRow<T>[] {
  const rows: GridRow<T>[] = []
  for (const { key, heading, items } of groups) {
    if (items.length === 0) continue
    if (heading !== undefined) rows.push({ kind: 'heading', key: `${key} heading`, heading, count: items.length })
    for (let start = 0; start < items.length; start += columns) {
      rows.push({ kind: 'items', key: `${key} ${start}`, items: items.slice(start, start + columns) })
    }
  }
  return rows
}
