import type { Group, NamedGroup } from '#identity/group.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import type { Awaitable } from '#kernel/awaitable.ts'

/** Reads users and groups of a directory, or of the system of a target. */
export interface AccountLookups {
  lookupUserByLogin(login: string): Awaitable<User | undefined>
  lookupUserById(id: string): Awaitable<User | undefined>
  searchUsers(query: SearchQuery): Promise<SearchPage<User>>
  /** Members may be many, so a store that can leaves them out if they are not requested. */
  lookupGroupByName(name: string, options?: GroupReadOptions): Promise<Group | undefined>
  lookupGroupById(id: string, options?: GroupReadOptions): Promise<Group | undefined>
  /** Members are not required. */
  searchGroups(query: SearchQuery): Promise<SearchPage<Group>>
  /**
   * Only if groups nest: for each of these groups, by id, every group that contains it, directly or through other
   * groups. Each is named once. A group that no other contains may be left out.
   */
  containingGroups?(ids: readonly string[]): Promise<ReadonlyMap<string, readonly ContainingGroup[]>>
}

/** What to read of a group. */
export interface GroupReadOptions {
  readonly members: boolean
  /** Many members may be left to `memberPages` of the group, so that they need not be in memory at once. */
  readonly inPages?: boolean
  /** The attributes whose first value is the display name of a member. A store that can't read them leaves them out. */
  readonly display?: { readonly users: string; readonly groups: string }
}

/** A group that contains another one. */
export interface ContainingGroup extends NamedGroup {
  /** The other group is also a direct member of it. */
  readonly direct: boolean
}

/** One change of a user or group, for the audit. The transaction itself reports it, so the audit has what really happened. */
export interface EntryChange {
  /**
   * `entry`: a whole user (attribute `userID`) or group (attribute `name`). `group`: a membership, with the group's name
   * (attribute `groups`) or, where a group was changed, the login or the name of the member (attribute `members`).
   */
  readonly subject: 'entry' | 'attribute' | 'group'
  readonly action: 'add' | 'replace' | 'delete'
  /** The attribute's name; the key attribute for an entry. */
  readonly attribute: string
  /** Left out for secrets. */
  readonly value?: string
  /** Its audit entry is already written, by `auditWithin`. */
  readonly audited?: boolean
}

/** Where a write reports its changes. */
export interface ChangeAudit<Change extends EntryChange = EntryChange> {
  /** Call it for each change after it was made. */
  audit(change: Change): void
  /**
   * For stores in a database of Gatehouse: writes the audit entries in the transaction of the changes. False if the
   * transaction belongs to another database. After the commit, call `audit` for each change as well, marked as `audited`.
   */
  readonly auditWithin?: (transaction: object, changes: readonly Change[]) => Promise<boolean>
}

/**
 * Writes users. Every method is idempotent: creating what already exists with the same values, and deleting what is gone,
 * succeed and change nothing. Nothing is half done.
 */
export interface AccountWrites<Request extends ChangeAudit = ChangeAudit> {
  /**
   * Throws CONFLICT if another user has a value that must be unique, and if such a user exists with other values:
   * someone else created it, and of two concurrent creators one must get an error.
   */
  createUser(user: User, attributes: readonly string[], request: Request, options?: CreateOptions): Promise<void>
  syncUser(user: User, options: SyncOptions, request: Request): Promise<void>
  /** With an expected version, only while the stored one is that; else VERSION_MISMATCH. */
  deleteUser(user: User, request: Request, options?: DeleteOptions): Promise<void>
}

/** Options of a create. */
export interface CreateOptions {
  /** The user or group must not exist: CONFLICT even for an existing one with the same values. */
  readonly mustBeNew?: boolean
}

/** Options of a delete. */
export interface DeleteOptions {
  /** If given, the change happens only while the stored version is this one; else VERSION_MISMATCH. */
  readonly expectedVersion?: string
}

/** What a sync may change. */
export interface SyncOptions extends DeleteOptions {
  /** Only add what is missing; otherwise the stored user is made equal to the given one, including groups. */
  readonly addOnly: boolean
  /** The attributes that may change; all others, present or absent, stay unchanged. */
  readonly attributes: readonly string[]
  /** Memberships stay unchanged, independent of the user's groups. */
  readonly keepGroups: boolean
  /**
   * The group that the user joins or leaves. A store whose groups have ids changes memberships only while this one
   * has this name, else VERSION_MISMATCH: a renamed or deleted group must not be re-created.
   */
  readonly expectedGroup?: NamedGroup
  /** The new login; only for targets with `renamesUsers`. CONFLICT if it is taken. */
  readonly newUserID?: string
}

/** Writes groups. Membership changes are sets, never a rewritten list. */
export interface GroupWrites<Request extends ChangeAudit = ChangeAudit> {
  /** Throws CONFLICT if there is such a group with other attributes. */
  createGroup(
    name: string,
    attributes: Readonly<Record<string, readonly string[]>>,
    request: Request,
    options?: CreateOptions,
  ): Promise<void>
  /**
   * Without a change, only the version is compared and renewed, so that of two callers that expect the same one
   * fails. Throws NOT_FOUND, CONFLICT if the new name is taken, VERSION_MISMATCH.
   */
  updateGroup(name: string, change: GroupChange, request: Request): Promise<void>
  deleteGroup(name: string, request: Request, options?: DeleteOptions): Promise<void>
  /**
   * Only if groups nest. Throws NOT_FOUND if one of the groups doesn't exist under this name and id, and CONFLICT
   * if a group would contain itself. Removing a group that isn't a member changes nothing.
   */
  changeMemberGroups?(name: string, change: MemberGroupChange, request: Request): Promise<void>
}

/** The change of a group. */
export interface GroupChange {
  readonly newName?: string
  /** An empty list clears one; all others stay. */
  readonly attributes?: Readonly<Record<string, readonly string[]>>
  readonly expectedVersion?: string
}

/** Groups to add to a group, and to remove from it. */
export interface MemberGroupChange {
  readonly add: readonly NamedGroup[]
  readonly remove: readonly NamedGroup[]
  /** The id of the group that changes, if the caller knows it. NOT_FOUND if the group of that name has another id. */
  readonly groupId?: string
}
