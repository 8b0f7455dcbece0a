import type { Directory } from '#identity/directory.ts'
import type { TimeAttribute } from '#identity/entry-times.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Group, NamedGroup } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { SortOrder } from '#identity/user-directory.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import type { CreatedAccount, UniqueValue } from '#sdk/target/new-account.ts'

/** One change that a target made, for the audit. */
export interface TargetChange {
  /** `entry` if a whole user or group was created or deleted. */
  readonly subject: 'entry' | 'attribute' | 'group'
  readonly action: 'add' | 'replace' | 'delete'
  /** The attribute's name; the key attribute for an entry. */
  readonly attribute: string
  /** Left out for secrets. */
  readonly value?: string
  /** The group of an attribute that is not the user's. */
  readonly group?: string
  /** Its audit entry is already written, by `auditWithin`. */
  readonly audited?: boolean
}

/** The requester and the workflow of a call to a target. */
export interface TargetRequest {
  readonly workflow: { readonly id: string; readonly name: string }
  /** The same for every attempt of the same step, and for no other step. */
  readonly idempotencyKey: string
  readonly requestor: string
  /** The workflow's request map. */
  readonly params: Readonly<Record<string, unknown>>
  readonly log: Logger
  /** Call it for each change after it was made. */
  audit(change: TargetChange): void
  /**
   * For targets that store their users by `openUserDirectory`: writes the audit entries in the transaction of the
   * changes. False if the transaction belongs to another database. After the commit, call `audit` for each change
   * as well, marked as `audited`.
   */
  readonly auditWithin?: (transaction: object, changes: readonly TargetChange[]) => Promise<boolean>
  /**
   * Called with planned changes before the target is called: if the outcome stays unknown, because the process died
   * or the response was lost, the audit still gets its rows once the change is found.
   */
  readonly planChanges?: (changes: readonly TargetChange[]) => Promise<void>
  readonly signal?: AbortSignal | undefined
  /** Present if the run may only write accounts that it created. The engine enforces it; targets need not check. */
  readonly newAccount?: AccountOrigin | undefined
}

/** What a run that may only create accounts knows about the accounts at one target. */
export interface AccountOrigin {
  /** Values that no other account may have. */
  readonly unique: readonly UniqueValue[]
  /** Accounts that the run created so far, at all targets. */
  readonly created: readonly CreatedAccount[]
  /** The account that the run created here under this login; `id` where the target gave it one. */
  own(userID: string): { readonly id?: string } | undefined
  /**
   * Whether an attempt whose end was not recorded created the account: `yes` if the audit says so, `maybe` if it
   * was planned, with an unknown outcome.
   */
  earlierAttempt(userID: string): Promise<'yes' | 'maybe' | 'no'>
  noteCreated(userID: string, id: string | undefined): void
  noteDeleted(userID: string): void
}

/** Options of a create. */
export interface CreateOptions {
  /** The user or group must not exist: CONFLICT even for an existing one with the same values. */
  readonly mustBeNew?: boolean
}

/** What a sync may change. */
export interface SyncOptions {
  /** Only add what is missing; otherwise the target is made equal to the user, including groups. */
  readonly addOnly: boolean
  /** The attributes that may change; all others, present or absent, stay unchanged. */
  readonly attributes: readonly string[]
  /** Memberships stay unchanged, independent of the user's groups. */
  readonly keepGroups: boolean
  /** If given, the change happens only while the stored version is this one; else VERSION_MISMATCH. */
  readonly expectedVersion?: string
  /**
   * The group that the user joins or leaves. A target whose groups have ids changes memberships only while this one
   * has this name, else VERSION_MISMATCH: a renamed or deleted group must not be re-created.
   */
  readonly expectedGroup?: NamedGroup
  /** The new login; only for targets with `renamesUsers`. CONFLICT if it is taken. */
  readonly newUserID?: string
}

/** What a create or sync would write of a user. */
export interface PlannedWrite {
  /** The attributes that change. */
  readonly attributes: readonly string[]
  /** The user is created. */
  readonly isNew: boolean
  /** The new login. */
  readonly newUserID?: string
}

/**
 * A system that accounts are written to. Every method is idempotent: creating what already exists with the same
 * values, and deleting what is gone, succeed and change nothing. Failures are thrown as GatewayError
 * TARGET_UNREACHABLE (worth a retry) or TARGET_FAILED (not), CONFLICT (a uniqueness rule) or BAD_REQUEST (a value
 * the target can't store, with its `attribute`, since callers have other names for it); nothing is half done.
 */
export interface Target extends Closable {
  /** Undefined if absent. Only the named attributes are required, plus groups. */
  findUser(userID: string, attributes: readonly string[], request: TargetRequest): Awaitable<User | undefined>
  /**
   * Throws CONFLICT if another user has a value that must be unique, and if such a user exists with other values:
   * someone else created it, and of two concurrent creators one must get an error.
   */
  createUser(user: User, attributes: readonly string[], request: TargetRequest, options?: CreateOptions): Promise<void>
  syncUser(user: User, options: SyncOptions, request: TargetRequest): Promise<void>
  /** With an expected version, only while the stored one is that; else VERSION_MISMATCH. */
  deleteUser(user: User, request: TargetRequest, options?: { readonly expectedVersion?: string }): Promise<void>
  /** A user's login can be changed. */
  readonly renamesUsers?: boolean
  /**
   * The commit that makes its changes also audits them (see `auditWithin`), so planned changes need not be stored, and a
   * sync with an expected version needs no read before it.
   */
  readonly auditsWithin?: boolean
  /** Users and groups have a version, and changes can be bound to it. */
  readonly keepsVersions?: boolean
  /**
   * Where the account is in the system of the target, so that a directory insert on the same system recognizes it.
   * Undefined if the account does not exist. Absent if the target can't report it.
   */
  storedAt?(userID: string): Promise<StoredAccount | undefined>
  /**
   * The attributes that the target can store; absent if it stores any attribute. Throws TARGET_UNREACHABLE while
   * its system hasn't answered yet.
   */
  storable?(): Promise<StorableAttributes>
  /**
   * Throws BAD_REQUEST, naming the attribute, if the target can't store a value of the user, as far as its configuration
   * and the schema of its system show. Changes nothing. Absent if it can't know before it writes.
   */
  requirePlaces?(user: User, write: PlannedWrite): Promise<void>
  /** The value that the target gives the attribute of a user that has none of its own; undefined if it gives none. */
  defaultValue?(attribute: string, user: User): string | undefined
}

/** Names are in lower case. */
export interface StorableAttributes {
  /** `any` if the names aren't limited. */
  readonly users: ReadonlySet<string> | 'any'
  readonly groups: ReadonlySet<string> | 'any'
  /** Attributes that never have several values, so that a filter can't find an entry by a value that is not the first. */
  readonly single?: { readonly users: ReadonlySet<string>; readonly groups: ReadonlySet<string> }
}

/** An account as the system behind a target stores it. */
export interface StoredAccount {
  /** The same text for every target and directory insert on the same system. */
  readonly system: string
  /** The account's own name there: a login, or a distinguished name. */
  readonly name: string
}

/** Optional: the target stores passwords. */
export interface PasswordTarget extends Target {
  setUserPassword(user: User, password: string, request: TargetRequest): Promise<void>
}

/** A search for users or groups. */
export interface SearchQuery {
  /** All if absent. */
  readonly filter?: Filter | undefined
  /** How many to skip. */
  readonly offset: number
  readonly limit: number
  /** The requested attributes; all if absent. */
  readonly attributes?: readonly string[] | undefined
  /** The target's own order if absent. */
  readonly sort?: SortOrder | undefined
  /** The `next` of a page of the same filter and order, instead of an offset. Any other text is BAD_REQUEST. */
  readonly after?: string | undefined
  /** The total is not needed, so that it need not be counted: it may be smaller, but shows whether more follow. */
  readonly uncounted?: boolean
}

/** A page of users or groups. */
export interface SearchPage<T> {
  /** In a stable order. */
  readonly items: readonly T[]
  /** How many match in total. */
  readonly total: number
  /** Where the next page starts; absent on the last page. */
  readonly next?: string | undefined
}

/** The times that searches can filter and sort by. */
export interface ServedTimes {
  readonly users: readonly TimeAttribute[]
  readonly groups: readonly TimeAttribute[]
}

/** Optional: the target has lookups. */
export interface LookupTarget extends Target {
  lookupUserByLogin(login: string): Awaitable<User | undefined>
  lookupUserById(id: string): Awaitable<User | undefined>
  searchUsers(query: SearchQuery): Promise<SearchPage<User>>
  /** Members may be many, so a target that can leaves them out if they are not requested. */
  lookupGroupByName(name: string, options?: GroupReadOptions): Promise<Group | undefined>
  lookupGroupById(id: string, options?: GroupReadOptions): Promise<Group | undefined>
  /** Members are not required. */
  searchGroups(query: SearchQuery): Promise<SearchPage<Group>>
  /** Group members are ids rather than logins. */
  readonly groupMembersAreIds: boolean
  /** The directory shows the names of a user's groups in the attribute `groups`, and a search can filter by it. */
  readonly showsGroups?: boolean
  /** A user's id is the login itself. */
  readonly userIdIsLogin: boolean
  /** A group's id is distinct from its name. */
  readonly groupHasOwnId: boolean
  /**
   * Which times of users and groups searches can filter and sort by. Absent: none, so the names in `TimeAttribute`
   * must not be used in a query.
   */
  readonly servedTimes?: ServedTimes
  /**
   * Values come back as Gatehouse writes them and in that order, since no one else writes them, or since the target makes
   * them so. Otherwise the SCIM gateway tests itself what depends on that: the first of several values, and parts of JSON.
   */
  readonly ownsValues?: boolean
  /** No user has the id of a group. Otherwise the SCIM gateway marks the ids of groups. */
  readonly idsAreUnique?: boolean
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
  /**
   * The attributes whose first value is the display name of a member. A target that can't read them leaves them
   * out.
   */
  readonly display?: { readonly users: string; readonly groups: string }
}

/** A group that contains another one. */
export interface ContainingGroup extends NamedGroup {
  /** The other group is also a direct member of it. */
  readonly direct: boolean
}

/** Optional: the target owns groups. Membership changes are sets, never a rewritten list. */
export interface GroupTarget extends Target {
  /** Undefined if absent. Without the members, which may be many. */
  findGroup(name: string): Promise<Group | undefined>
  /** Throws CONFLICT if there is such a group with other attributes. */
  createGroup(
    name: string,
    attributes: Readonly<Record<string, readonly string[]>>,
    request: TargetRequest,
    options?: CreateOptions,
  ): Promise<void>
  /**
   * Without a change, only the version is compared and renewed, so that of two callers that expect the same one
   * fails. Throws NOT_FOUND, CONFLICT if the new name is taken, VERSION_MISMATCH.
   */
  updateGroup(name: string, change: GroupChange, request: TargetRequest): Promise<void>
  deleteGroup(name: string, request: TargetRequest, options?: { readonly expectedVersion?: string }): Promise<void>
  /**
   * Only if groups nest. Throws NOT_FOUND if one of the groups doesn't exist under this name and id, and CONFLICT
   * if a group would contain itself. Removing a group that isn't a member changes nothing.
   */
  changeMemberGroups?(name: string, change: MemberGroupChange, request: TargetRequest): Promise<void>
}

/** Groups to add to a group, and to remove from it. */
export interface MemberGroupChange {
  readonly add: readonly NamedGroup[]
  readonly remove: readonly NamedGroup[]
  /** The id of the group that changes, if the caller knows it. NOT_FOUND if the group of that name has another id. */
  readonly groupId?: string
}

/** The change of a group. */
export interface GroupChange {
  readonly newName?: string
  /** An empty list clears one; all others stay. */
  readonly attributes?: Readonly<Record<string, readonly string[]>>
  readonly expectedVersion?: string
}

/** Whether the target can look up users. */
export const hasLookups = (target: Target): target is LookupTarget => 'lookupUserByLogin' in target
/** Whether the target has groups. */
export const hasGroups = (target: Target): target is GroupTarget => 'createGroup' in target
/** Whether groups of the target can contain groups. */
export const nestsGroups = (
  target: Target,
): target is GroupTarget & Required<Pick<GroupTarget, 'changeMemberGroups'>> => 'changeMemberGroups' in target
/** Whether the target stores passwords. */
export const hasPasswords = (target: Target): target is PasswordTarget => 'setUserPassword' in target

/** Targets by name. */
export interface TargetSource {
  /** Throws INTERNAL for an unknown name; the configuration check ensures that it exists. */
  get(name: string): Target
  /** The names of all targets, in the order of names. */
  names?(): readonly string[]
}

/** The host of modules that look values up: mappers, value sources and dynamic workflows. */
export interface LookupHost extends ModuleHost {
  readonly targets: TargetSource
  /** The virtual directory. */
  readonly directory: Directory
}
