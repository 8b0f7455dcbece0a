import type { IconName } from '../../components/icon.tsx'
import { matches, matchRank, sortByMatch } from '../../components/matching.ts'
import type { MessageKey } from '../messages.ts'

/** One result: what it is called, and what choosing it does. */
export interface PaletteItem {
  readonly key: string
  readonly label: string
  /** A second line. */
  readonly hint?: string
  readonly icon: IconName
  readonly open: () => void
}

export interface PaletteGroup {
  readonly title: MessageKey
  readonly items: readonly PaletteItem[]
  /** The gateway searched already, also in texts that are not shown. */
  readonly isFound?: boolean
}

/** The most results of each group; the pages behind them have the others. */
const maxItems = 6

/** The groups with matching items, that with the best match first. */
export function resultsFor(query: string, groups: readonly PaletteGroup[]): readonly PaletteGroup[] {
  const typed = query.trim()
  const matching = groups.map(({ title, items, isFound = false }) => ({
    title,
    items: sortByMatch(
      typed,
      items.filter(({ label, hint = '' }) => isFound || matches(typed, label, hint)),
    ).slice(0, maxItems),
  }))
  const shown = matching.filter(({ items }) => items.length > 0)
  if (typed === '') return shown
  const best = ({ items }: PaletteGroup): number => Math.min(...items.map(({ label }) => matchRank(typed, label)))
  return shown.toSorted((one, other) => best(one) - best(other))
}

/** The result that the arrow keys lead to, from the last to the first and back. */
export const stepFrom = (active: number, by: 1 | -1, count: number): number =>
  count === 0 ? 0 : (active + by + count) % count
