import type { GroupTarget } from '#sdk/target/target.ts'
import { other } from '#testing/hostile-values.ts'

export type Place = 'login' | 'value' | 'group' | 'text of group' | 'password'

export interface TrialOptions {
  /** An attribute of several values and one of a single value; none where users have none. */
  readonly attributes: readonly [string, string] | readonly []
  /** An attribute of groups; null where they have none. */
  readonly groupAttribute?: string | null
  /** The groups there are, where none can be made. */
  readonly groups?: readonly [string, ...string[]]
  /** Groups cannot be changed: NOT_SUPPORTED. */
  readonly fixedGroups?: boolean
  /** What the target may refuse, there. Any other BAD_REQUEST is a failure. */
  readonly mayRefuse?: (place: Place, value: string) => boolean
  /** How many are there at a time, how many calls are under way, and how many values one filter has. */
  readonly batch?: number
  readonly width?: number
  readonly pack?: number
  /** Characters of a text that stand in a filter as a whole; any number when absent. */
  readonly longestInFilter?: number
  /** Makes the groups where the target cannot, and is not on trial itself. */
  readonly groupMaker?: GroupTarget
}

/** One value, and what stands where: the value itself, or its number alone where the target refuses the value. */
export interface Entry {
  /** In the attributes; the first one is also in all other places. */
  readonly values: readonly string[]
  readonly value: string
  login: string
  id: string
  many: readonly string[]
  one: string
  /** The group that is named by the value, its text, and the group that the user is in. */
  group: string
  text: string
  home: Entry
}

/** What no store of text holds, and what is too long for a name. */
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
