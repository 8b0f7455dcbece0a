import type { AccountLookups, AccountWrites, ChangeAudit, EntryChange, GroupWrites } from '#identity/account-store.ts'
import type { Directory } from '#identity/directory.ts'
import type { TimeAttribute } from '#identity/entry-times.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import type { CreatedAccount, UniqueValue } from '#sdk/target/new-account.ts'

/** One change that a target made, for the audit. */
export interface TargetChange extends EntryChange {
  /** The group of an attribute that is not the user's. */
  readonly group?: string
}

/** The requester and the workflow of a call to a target. */
export interface TargetRequest extends ChangeAudit<TargetChange> {
  readonly workflow: { readonly id: string; readonly name: string }
  /** The same for every attempt of the same step, and for no other step. */
  readonly idempotencyKey: string
  readonly requestor: string
  /** The workflow's request map. */
  readonly params: Readonly<Record<string, unknown>>
  readonly log: Logger
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
 * A system that accounts are written to. Failures are thrown as GatewayError
 * TARGET_UNREACHABLE (worth a retry) or TARGET_FAILED (not), CONFLICT (a uniqueness rule) or BAD_REQUEST (a value
 * the target can't store, with its `attribute`, since callers have other names for it); nothing is half done.
 */
export interface Target extends AccountWrites<TargetRequest>, Closable {
  /** Undefined if absent. Only the named attributes are required, plus groups. */
  findUser(userID: string, attributes: readonly string[], request: TargetRequest): Awaitable<User | undefined>
  /** A user's login can be changed. */
  readonly renamesUsers?: boolean
  /**
   * The commit that makes its changes also audits them (see `auditWithin`), so planned changes need not be stored, and a
   * sync with an expected version needs no read before it.
   */
  readonly auditsWithin?: boolean
  /** A deleted user stays, deactivated: the system hides those that it deletes, or can't delete any. */
  readonly keepsDeleted?: boolean
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
  /**
   * Throws if a place where the target keeps users or groups is missing, though its system answers. Reads only. Absent if
   * look-ups fail without it.
   */
  checkPlaces?(): Promise<void>
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

/** The times that searches can filter and sort by. */
export interface ServedTimes {
  readonly users: readonly TimeAttribute[]
  readonly groups: readonly TimeAttribute[]
}

/** Optional: the target has lookups. */
export interface LookupTarget extends Target, AccountLookups {
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
  /** Searches sorted by `userID` are in the order of `compareSortKeys`, and each page costs the same. */
  readonly sortsLogins?: boolean
  /** No user has the id of a group. Otherwise the SCIM gateway marks the ids of groups. */
  readonly idsAreUnique?: boolean
}

/** Optional: the target owns groups. Membership changes are sets, never a rewritten list. */
export interface GroupTarget extends Target, GroupWrites<TargetRequest> {
  /** Undefined if absent. Without the members, which may be many. */
  findGroup(name: string): Promise<Group | undefined>
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
