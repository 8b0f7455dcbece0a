import type { Filter } from '#identity/filter/ast.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'

export interface UserDirectoryOptions {
  /** Users of one name space do not see those of another. */
  readonly name: string
  /** `postgres://…` or `sqlite:<file>`; Gatehouse's own database when absent. */
  readonly url?: string
}

export interface UserSearch {
  readonly filter?: Filter
  readonly offset: number
  readonly limit: number
  /** In the order of creation when absent. */
  readonly sort?: SortOrder
  /** The `next` of a page of the same filter and order: continues behind it at the same cost everywhere. */
  readonly after?: string
}

/**
 * By the attribute's first value, in folded letter case; of long values the beginning counts. Where letter case counts,
 * it decides between values that are alike otherwise. Entries without a value come last, as RFC 7644 3.4.2.3 has it,
 * and those that compare equal in the order of creation. Descending is all of that in reverse.
 */
export interface SortOrder {
  readonly attribute: string
  readonly descending: boolean
  readonly caseExact: boolean
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly total: number
  /** Where the following page starts; absent on the last one. */
  readonly next?: string
}

/** What changed, told by the transaction that changed it, so that the audit says what really happened. */
export interface UserChange {
  /**
   * `entry` for a user (attribute `userID`) or a group (attribute `name`) as a whole, `group` for a membership, told by
   * the group's name (attribute `groups`) or, where a group was changed, the user's login or the member group's name
   * (attribute `members`).
   */
  readonly subject: 'entry' | 'attribute' | 'group'
  readonly action: 'add' | 'replace' | 'delete'
  readonly attribute: string
  readonly value?: string
}

/**
 * Is told what changes inside the transaction that changes it, so that a record of it can be part of the same commit.
 * A transaction that has to be tried again tells it again.
 */
export type ChangeRecorder = (transaction: object, changes: readonly UserChange[]) => Promise<void>

export interface UserSync {
  readonly userID: string
  /** Attributes to bring to the given values; an empty list clears one (unless addOnly). */
  readonly attributes: ReadonlyMap<string, readonly string[]>
  /** Undefined leaves memberships alone. Groups that do not exist are created. */
  readonly groups: readonly string[] | undefined
  readonly addOnly: boolean
  readonly expectedVersion?: string
  /** Where given, the change happens only while this group has this name; else VERSION_MISMATCH. */
  readonly expectedGroup?: NamedGroup
  /** The login the user is to have from now on. */
  readonly newUserID?: string
}

/** A group by the name it is known by and the id that it keeps. */
export interface NamedGroup {
  readonly name: string
  readonly id: string
}

export interface GroupUpdate {
  readonly newName?: string
  /** Attributes to bring to the given values; an empty list clears one. */
  readonly attributes?: ReadonlyMap<string, readonly string[]>
  readonly expectedVersion?: string
}

/** Groups that become direct members of another one, and groups that are members no longer. */
export interface NestingChange {
  readonly add: readonly NamedGroup[]
  readonly remove: readonly NamedGroup[]
  /** Where given, the change happens only while the group has this id; else NOT_FOUND. */
  readonly groupId?: string
}

/** Which attributes' first values members are shown by. */
export interface GroupReading {
  readonly members: boolean
  readonly display?: { readonly users: string; readonly groups: string }
}

/** What a directory holds of one user or group. More, or a NUL character or half a surrogate pair, is BAD_REQUEST. */
export const directoryLimits = {
  /** Bytes of UTF-8 in a login or a group's name, and in an attribute's name. */
  nameBytes: 512,
  /** Bytes of UTF-8 in a value. */
  valueBytes: 64 * 1024,
  valuesPerAttribute: 1000,
  attributes: 1000,
  /** Memberships of a user, and members added or removed in one call. */
  memberships: 10_000,
  /** Items of a page, whatever is asked. */
  page: 1000,
} as const

/**
 * Users, groups and memberships in a database. Logins and group names are unique without regard to case, and keep the
 * case they were written with. Ids are made by the store and never reused. Every method is one transaction.
 *
 * Any attribute can be filtered on, and an equality or prefix filter is served by an index. In filters `id` and, for
 * users, `userID` or, for groups, `name` mean the entry's own; a stored attribute of such a name is hidden from filters.
 *
 * Every method throws TARGET_UNREACHABLE, and has done nothing, when the database does not answer.
 */
export interface UserDirectory {
  findByLogin(userID: string): Promise<User | undefined>
  findById(id: string): Promise<User | undefined>
  /** In the order of creation. */
  searchUsers(search: UserSearch): Promise<Page<User>>
  /** Throws CONFLICT when the login is taken. Groups that do not exist are created. */
  create(user: User, record?: ChangeRecorder): Promise<readonly UserChange[]>
  /**
   * No changes, and no new version, when everything is as it should be already. Throws NOT_FOUND when there is no such
   * user, VERSION_MISMATCH when it has another version, CONFLICT when the new login is taken.
   */
  sync(change: UserSync, record?: ChangeRecorder): Promise<readonly UserChange[]>
  /**
   * Tells the entry alone; attributes and memberships go with it. No changes when there is no such user. Throws
   * VERSION_MISMATCH when it has another version than the one expected.
   */
  delete(
    userID: string,
    options?: { readonly expectedVersion?: string },
    record?: ChangeRecorder,
  ): Promise<readonly UserChange[]>

  /** With its members' logins and the groups that are members, unless told to leave them out. */
  findGroupByName(name: string, options?: GroupReading): Promise<Group | undefined>
  findGroupById(id: string, options?: GroupReading): Promise<Group | undefined>
  /** In the order of creation, without members. */
  searchGroups(search: UserSearch): Promise<Page<Group>>
  /** Throws CONFLICT when the name is taken. */
  createGroup(name: string, attributes: ReadonlyMap<string, readonly string[]>): Promise<Group>
  /**
   * No changes when everything is as it should be already; with an expected version the group has a new one even then,
   * so that of all who expect the same one only one succeeds. Throws NOT_FOUND, VERSION_MISMATCH, and CONFLICT when the
   * new name is taken.
   */
  updateGroup(name: string, update: GroupUpdate, record?: ChangeRecorder): Promise<readonly UserChange[]>
  /** False when there was none. Throws VERSION_MISMATCH when it has another version than the one expected. */
  deleteGroup(name: string, options?: { readonly expectedVersion?: string }): Promise<boolean>
  /** Adds and removes members by login, without reading the others. Throws NOT_FOUND for an unknown group or login. */
  changeMembers(
    group: string,
    change: { readonly add: readonly string[]; readonly remove: readonly string[] },
  ): Promise<readonly UserChange[]>
  /**
   * Adds groups to a group and removes groups from it. Throws NOT_FOUND when the group, or one that is to be added, doesn't
   * exist under this name and id, and CONFLICT when a group would contain itself, directly or through others; also when
   * others nest groups at the same time.
   */
  changeMemberGroups(group: string, change: NestingChange, record?: ChangeRecorder): Promise<readonly UserChange[]>
  /** For each of these groups, by id: the groups that contain it, each once. Groups that nothing contains are left out. */
  containingGroups(
    ids: readonly string[],
  ): Promise<ReadonlyMap<string, readonly (NamedGroup & { readonly direct: boolean })[]>>

  close(): Promise<void>
}
