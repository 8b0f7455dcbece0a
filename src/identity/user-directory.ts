import type { ContainingGroup, GroupChange, GroupReadOptions, MemberGroupChange } from '#identity/account-store.ts'
import type { EntryChange } from '#identity/entry-changes.ts'
import type { Group, NamedGroup } from '#identity/group.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import type { Awaitable } from '#kernel/awaitable.ts'

export interface UserDirectoryOptions {
  /** The name space. Directories with different names in one database are separate. */
  readonly name: string
  /** `postgres://…` or `sqlite:<file>`. Default: Gatehouse's own database. */
  readonly url?: string
}

/**
 * Gets the changes inside the transaction that makes them, so that a record of them is part of the same commit. A
 * transaction that is retried calls it again.
 */
export type ChangeRecorder = (transaction: object, changes: readonly EntryChange[]) => Promise<void>

export interface UserSync {
  readonly userID: string
  /** The new values of attributes; an empty list removes the attribute (unless addOnly). */
  readonly attributes: ReadonlyMap<string, readonly string[]>
  /** Undefined keeps the memberships. Groups that do not exist are created. */
  readonly groups: readonly string[] | undefined
  readonly addOnly: boolean
  readonly expectedVersion?: string
  /** The change happens only while this group has this name; else VERSION_MISMATCH. */
  readonly expectedGroup?: NamedGroup
  /** The new login. */
  readonly newUserID?: string
}

/** Limits of one user or group. Beyond them, and for a NUL character or half a surrogate pair, writes throw BAD_REQUEST. */
export const directoryLimits = {
  /** Bytes of UTF-8 in a login or a group's name, and in an attribute's name. */
  nameBytes: 512,
  /** Bytes of UTF-8 in a value. */
  valueBytes: 64 * 1024,
  valuesPerAttribute: 1000,
  attributes: 1000,
  /** Memberships of a user, and members added or removed in one call. */
  memberships: 10_000,
  /** The maximum number of items in a page. */
  page: 1000,
} as const

/**
 * Users, groups and memberships in a database. Logins and group names are unique without regard to letter case, and
 * keep the case in which they were written. The store creates ids and never reuses them. Every method is one
 * transaction.
 *
 * Filters work on any attribute, and an index serves equality and prefixes. In filters, `id` and `userID` (of
 * users) or `name` (of groups) mean the entry itself; filters do not see a stored attribute of that name.
 *
 * If the database does not answer, every method throws TARGET_UNREACHABLE and changes nothing.
 */
export interface UserDirectory {
  findByLogin(userID: string): Awaitable<User | undefined>
  findById(id: string): Awaitable<User | undefined>
  /** In the order of creation. */
  searchUsers(search: SearchQuery): Promise<SearchPage<User>>
  /** Throws CONFLICT if the login is taken. Creates groups that do not exist. */
  create(user: User, record?: ChangeRecorder): Promise<readonly EntryChange[]>
  /**
   * Returns no changes, and keeps the version, if the user already is as requested. Throws NOT_FOUND for an unknown
   * user, VERSION_MISMATCH if the user has another version, CONFLICT if the new login is taken.
   */
  sync(change: UserSync, record?: ChangeRecorder): Promise<readonly EntryChange[]>
  /**
   * Deletes a user with its attributes and memberships, and returns one change for all of them; none for an unknown user.
   * Throws VERSION_MISMATCH when the user has another version.
   */
  delete(
    userID: string,
    options?: { readonly expectedVersion?: string },
    record?: ChangeRecorder,
  ): Promise<readonly EntryChange[]>

  /** Reads the members' logins and the groups that are members, unless `options` leave them out. */
  findGroupByName(name: string, options?: GroupReadOptions): Promise<Group | undefined>
  findGroupById(id: string, options?: GroupReadOptions): Promise<Group | undefined>
  /** In the order of creation, without members. */
  searchGroups(search: SearchQuery): Promise<SearchPage<Group>>
  /** Throws CONFLICT when the name is taken. */
  createGroup(name: string, attributes: ReadonlyMap<string, readonly string[]>): Promise<Group>
  /**
   * Returns no changes if the group already is as requested. With an expected version the group gets a new one even
   * then, so that only one of many callers that expect the same version succeeds. Throws NOT_FOUND,
   * VERSION_MISMATCH, and CONFLICT if the new name is taken.
   */
  updateGroup(name: string, update: GroupChange, record?: ChangeRecorder): Promise<readonly EntryChange[]>
  /** False for an unknown group. Throws VERSION_MISMATCH when the group has another version. */
  deleteGroup(name: string, options?: { readonly expectedVersion?: string }): Promise<boolean>
  /** Adds and removes members by login, without reading the others. Throws NOT_FOUND for an unknown group or login. */
  changeMembers(
    group: string,
    change: { readonly add: readonly string[]; readonly remove: readonly string[] },
  ): Promise<readonly EntryChange[]>
  /**
   * Adds groups to a group and removes groups from it. Throws NOT_FOUND when the group, or one to add, does not exist under
   * this name and id, and CONFLICT when a group would contain itself, directly or through others, even if other
   * transactions nest groups at the same time.
   */
  changeMemberGroups(group: string, change: MemberGroupChange, record?: ChangeRecorder): Promise<readonly EntryChange[]>
  /** By group id: the groups that contain it, each once. Groups without one are left out. */
  containingGroups(ids: readonly string[]): Promise<ReadonlyMap<string, readonly ContainingGroup[]>>

  close(): Promise<void>
}
