import { compareCodePoints, foldValue } from '#identity/filter/compare-values.ts'

/** The key by which a value is sorted. */
export interface SortKey {
  /** Undefined for an entry without a value. */
  readonly folded: string | undefined
  /** Empty where letter case does not count. */
  readonly exact: string
}

/** UTF-16 units of a folded value that count. */
export const keyLength = 200

/** Code points of the value itself that count where letter case does. */
export const exactLength = 200

/** A folded text as it is compared: the whole text, or the start of a long one, which is longer than any whole text. */
export function cutKey(folded: string): string {
  if (folded.length <= keyLength) return folded
  const unit = folded.charCodeAt(keyLength)
  return folded.slice(0, keyLength + (unit >= 0xd800 && unit <= 0xdbff ? 2 : 1))
}

export function sortKey(value: string | undefined, caseExact: boolean): SortKey {
  if (value === undefined) return { folded: undefined, exact: '' }
  return { folded: cutKey(foldValue(value, false)), exact: caseExact ? exactKey(value) : '' }
}

const exactKey = (value: string): string =>
  value.length <= exactLength
    ? value
    : Array.from(value.slice(0, 2 * exactLength))
        .slice(0, exactLength)
        .join('')

/** Ascending. Zero where only the keys of the entries decide. */
export function compareSortKeys(a: SortKey, b: SortKey): number {
  if (a.folded === undefined || b.folded === undefined) {
    return Number(a.folded === undefined) - Number(b.folded === undefined)
  }
  return compareCodePoints(a.folded, b.folded) || compareCodePoints(a.exact, b.exact)
}
