import { Attributes } from '#identity/attributes.ts'
import type { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Identity } from '#identity/identity.ts'

/** An entry as the insert that holds it gives it. */
export interface InsertEntry {
  readonly dn: Dn
  readonly attributes: Attributes
  /** The entry's own identifier, which no other entry of the insert ever gets; absent where the system has none. */
  readonly id?: string
}

export interface DirectoryEntry extends InsertEntry {
  /** Stays the same when the entry is moved or renamed; made of the entry's name where its system has no identifiers. */
  readonly identity: Identity
}

export interface DirectorySearch {
  readonly base: Dn
  readonly scope: 'base' | 'one' | 'sub'
  readonly filter: Filter
  /** At most this many entries come back. */
  readonly limit: number
  /** The attributes wanted; all when absent. More may come. */
  readonly attributes?: readonly string[]
}

export interface DirectoryPageSearch extends DirectorySearch {
  /** The `next` of a page of the same search. BAD_REQUEST when no page gave it. */
  readonly after?: string
  /** Whether the page's `total` is wanted. */
  readonly count?: boolean
}

export interface DirectoryPage<Entry extends InsertEntry = DirectoryEntry> {
  /** In a stable order. */
  readonly entries: readonly Entry[]
  /** Where the following page starts; absent on the last one. */
  readonly next?: string
  /** How many entries match in all, where it was asked for and counting them costs little. */
  readonly total?: number
}

/**
 * Who and what there is in one tree of people and groups, whatever systems they live in. When a system that a search concerns does not answer, the
 * search throws TARGET_UNREACHABLE: an answer without that system's entries would pass for the whole truth.
 */
export interface EntryDirectory {
  search(search: DirectorySearch): Promise<readonly DirectoryEntry[]>
  /** Whether the entry is a member of the static group. False when there is no such group. */
  isMember(group: Dn, member: Dn): Promise<boolean>
}

export interface Directory extends EntryDirectory {
  page(search: DirectoryPageSearch): Promise<DirectoryPage>
  /** The entry of this identity, even if it moved; undefined when it is gone, or the identity isn't that of an entry. */
  entry(identity: Identity): Promise<DirectoryEntry | undefined>
  /**
   * Whether this is the entry's password; false for an empty one. NOT_SUPPORTED where the entry's system checks no
   * passwords. `local: false` says that the caller is not on this machine, so demo passwords are rejected.
   */
  bind(dn: Dn, password: string, caller?: { readonly local: boolean }): Promise<boolean>
}

export interface MemberDirectory extends Directory {
  /** The people in the static group, at most this many. None when there is no such group. */
  members(group: Dn, limit: number): Promise<readonly DirectoryEntry[]>
}

/** Where and how somebody was found in the directory, so that it can be asked about them again. */
export interface DirectoryLink {
  readonly dn: Dn
  /** What found the entry. One that it does not match any more would not be found by a login either. */
  readonly filter: Filter
  /** The entry's own identifier, where it has one: a name may come to be another person's. */
  readonly id: string | undefined
  /** The attribute whose first value is the login; undefined where the filter holds it. */
  readonly uidAttr: string | undefined
  /** What the credential said and the entry did not. */
  readonly added: Attributes
}

export function directoryLink(
  { dn, attributes }: InsertEntry,
  { filter, uidAttr, added = new Attributes() }: Pick<DirectoryLink, 'filter' | 'uidAttr'> & { added?: Attributes },
): DirectoryLink {
  return { dn, filter, id: entryId(attributes), uidAttr, added }
}

/** The attributes that hold an entry's own identifier, by system. */
export const idAttributes = ['entryUUID', 'objectGUID', 'nsUniqueId', 'ipaUniqueID'] as const

export function entryId(attributes: Attributes): string | undefined {
  for (const name of idAttributes) {
    const id = attributes.first(name)
    if (id !== undefined && id !== '') return id
  }
  return undefined
}
