import type { Attributes } from '#identity/attributes.ts'
import type { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'

export interface DirectoryEntry {
  readonly dn: Dn
  readonly attributes: Attributes
}

export interface DirectorySearch {
  readonly base: Dn
  readonly scope: 'base' | 'one' | 'sub'
  readonly filter: Filter
  /** At most this many entries come back. */
  readonly limit: number
}

/** One tree of people and groups, whatever systems they live in. */
export interface Directory {
  search(search: DirectorySearch): Promise<readonly DirectoryEntry[]>
  /** Whether the entry is a member of the static group. False when there is no such group. */
  isMember(group: Dn, member: Dn): Promise<boolean>
}

export interface MemberDirectory extends Directory {
  /** The people in the static group, at most this many. None when there is no such group. */
  members(group: Dn, limit: number): Promise<readonly DirectoryEntry[]>
}
