import type { GroupTarget } from '#sdk/target/target.ts'
import { other } from '#testing/hostile/hostile-values.ts'

export type Place = 'login' | 'value' | 'group' | 'text of group' | 'password'

export interface TrialOptions {
  /** An attribute with several values and one with a single value; empty if users have none. */
  readonly attributes: readonly [string, string] | readonly []
  /** An attribute of groups; null if they have none. */
  readonly groupAttribute?: string | null
  /** The existing groups, if none can be created. */
  readonly groups?: readonly [string, ...string[]]
  /** Groups cannot be changed: NOT_SUPPORTED. */
  readonly fixedGroups?: boolean
  /** The values that the target may reject in each place. Any other BAD_REQUEST is a failure. */
  readonly mayRefuse?: (place: Place, value: string) => boolean
  /** The numbers of concurrent entries, of concurrent calls, and of values per filter. */
  readonly batch?: number
  readonly width?: number
  readonly pack?: number
  /** The most characters of a text that a filter has in full; unlimited if absent. */
  readonly longestInFilter?: number
  /** Creates the groups if the target cannot, and is not under test itself. */
  readonly groupMaker?: GroupTarget
}

/** One value, and its form in each place: the value itself, or only its number if the target rejects the value. */
export interface Entry {
  /** In the attributes; the first one is also in all other places. */
  readonly values: readonly string[]
  readonly value: string
  login: string
  id: string
  many: readonly string[]
  one: string
  /** The group named by the value, its text, and the group of the user. */
  group: string
  text: string
  home: Entry
}

/** Values that no text store accepts, and values that are too long for a name. */
export const unstorable = (place: Place, value: string): boolean =>
  value.includes('\0') || !value.isWellFormed() || (place !== 'value' && Buffer.byteLength(value) > 512)

export function entryOf(values: readonly string[], given: string | undefined): Entry {
  const [value = ''] = values
  const entry: Omit<Entry, 'home'> & { home?: Entry } = {
    values,
    value,
    login: value,
    id: '',
    many: values.length === 1 ? [value, other(value)] : values,
    one: value,
    group: given ?? value,
    text: value,
  }
  return Object.assign(entry, { home: entry as Entry })
}
