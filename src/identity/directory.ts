import { Attributes } from '#identity/attributes.ts'
import type { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Identity } from '#identity/identity.ts'

/** An entry as its insert returns it. */
export interface InsertEntry {
  readonly dn: Dn
  readonly attributes: Attributes
  /** The entry's own identifier, which the insert never gives to another entry; absent if the system has none. */
  readonly id?: string | undefined
}

export interface DirectoryEntry extends InsertEntry {
  /**
   * Stays the same when the entry is moved or renamed. Derived from the entry's name if its system has no
   * identifiers.
   */
  readonly identity: Identity
}

export interface DirectorySearch {
  /** The empty name stands for the root of the directory. */
  readonly base: Dn
  readonly scope: 'base' | 'one' | 'sub'
  readonly filter: Filter
  /** The maximum number of entries. */
  readonly limit: number
  /** The requested attributes, all if absent. The result may have more. */
  readonly attributes?: readonly string[]
  /** If nothing matches, the search is repeated in the parts outside the root of the directory. */
  readonly everyTree?: boolean
}

export interface DirectoryPageSearch extends DirectorySearch {
  /** The `next` of a page of the same search. Any other text is BAD_REQUEST. */
  readonly after?: string
  /** Whether the page's `total` is requested. */
  readonly count?: boolean
}

export interface DirectoryPage<Entry extends InsertEntry = DirectoryEntry> {
  /** In a stable order. */
  readonly entries: readonly Entry[]
  /** Where the next page starts; absent on the last page. */
  readonly next?: string | undefined
  /** How many entries match in total, if it was requested and counting is cheap. */
  readonly total?: number | undefined
}

/**
 * One tree of users and groups over several systems. If a system that a search needs does not answer, the search
 * throws TARGET_UNREACHABLE, because a result without that system's entries would look complete.
 */
export interface EntryDirectory {
  search(search: DirectorySearch): Promise<readonly DirectoryEntry[]>
  /** Whether the entry is a member of the static group. False if the group does not exist. */
  isMember(group: Dn, member: Dn): Promise<boolean>
}

export interface Directory extends EntryDirectory {
  page(search: DirectoryPageSearch): Promise<DirectoryPage>
  /**
   * The entry with this identity, even if it moved; undefined if it was deleted, or the identity isn't that of an
   * entry.
   */
  entry(identity: Identity): Promise<DirectoryEntry | undefined>
  /**
   * Whether this is the entry's password; false for an empty one. Throws NOT_SUPPORTED if the entry's system checks
   * no passwords. `local: false` means that the caller is not on this machine, so demo passwords are rejected.
   */
  bind(dn: Dn, password: string, caller?: { readonly local: boolean }): Promise<boolean>
}

export interface MemberDirectory extends Directory {
  /** At most this many users of the static group. None if the group does not exist. */
  members(group: Dn, limit: number): Promise<readonly DirectoryEntry[]>
  /** The static group's members after the first `skip` ones, in the group's order. */
  memberPage(group: Dn, skip: number, limit: number): Promise<MemberPage>
}

export interface MemberPage {
  /** `entry` is absent if the directory has none of that name. */
  readonly members: readonly { readonly dn: Dn; readonly entry?: DirectoryEntry }[]
  readonly more: boolean
}

/** Where and how a user was found in the directory, to look them up again. */
export interface DirectoryLink {
  readonly dn: Dn
  /** The filter that found the entry. A login would no longer find an entry that does not match it. */
  readonly filter: Filter
  /** The entry's own identifier, if it has one: another user may get the name later. */
  readonly id: string | undefined
  /** The attribute whose first value is the login; undefined if the filter contains the login. */
  readonly uidAttr: string | undefined
  /** Attributes of the credential that the entry does not have. */
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
