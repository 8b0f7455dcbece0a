import type { EntryChange } from '#identity/account-store.ts'
import type { DirectoryPage, DirectoryPageSearch, InsertEntry } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import type { Closable } from '#kernel/scope.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module/module.ts'
import type { StoredAccount } from '#sdk/target/target.ts'
import type { TargetHost } from '#sdk/target-module/target-module.ts'

/**
 * A part of the virtual directory: everything at and below one suffix. All names that it gets and returns,
 * including DN-valued attributes, are names of the virtual tree; if its own system has others, it translates both
 * ways. Attribute names are those of its own system: the directory renames them by the insert's `mapping`.
 *
 * Failures are thrown as GatewayError: TARGET_UNREACHABLE if the system does not answer (never an empty result,
 * since "no one" and "unknown" are different for rules), TARGET_FAILED if it refuses, BAD_REQUEST for a filter or
 * position that it can't serve. Every wait is bounded.
 */
export interface DirectoryInsert extends Closable {
  /**
   * Entries at or below `base`, which is at or below the suffix, in a stable order, at most `limit` (from 1 to
   * 1,000) of them. `attributes` are the requested ones, which always include objectClass and the entry's
   * identifier; more may be returned. The filter is exact: this evaluates what the system can't; names in it are
   * compared as names (RFC 4514), in any spelling. A page may be short, or even empty, and still have a `next`. A
   * `base` that does not exist has no entries. The members of a group are required only if it is read by its name
   * (scope `base`).
   */
  search(search: DirectoryPageSearch): Promise<DirectoryPage<InsertEntry>>
  /**
   * Whether the static group, which is at or below the suffix, contains the member, which may be anywhere. False if
   * there is no such group. Does not read all members.
   */
  isMember(group: Dn, member: Dn): Promise<boolean>
  /** The static group's members, at most this many; their names may be anywhere. None if there is no such group. */
  members(group: Dn, limit: number): Promise<readonly Dn[]>
  /**
   * Whether this is the entry's password. False for an entry that does not exist, has no password or is locked,
   * after the same time. Never called with an empty password. Absent if the system checks none. `local: false`
   * means that the caller is not on this machine.
   */
  bind?(dn: Dn, password: string, caller?: { readonly local: boolean }): Promise<boolean>
  /**
   * Sets the password that `bind` checks. With an `id`, only while the entry has it: NOT_FOUND otherwise, as for an
   * entry that doesn't exist. BAD_REQUEST for a password that the system rejects. Absent if the insert can't write
   * passwords.
   */
  setEntryPassword?(dn: Dn, password: string, id: string | undefined): Promise<void>
  /** The name of the entry that shows this account of a target; undefined if the insert doesn't show it. */
  entryOf?(account: TargetAccount): Dn | undefined
}

/** An account of a target, as far as it is known. */
export interface TargetAccount {
  readonly target: string
  readonly userID: string
  readonly stored: StoredAccount | undefined
}

/**
 * Users, groups and passwords that can be changed from the command line. Each change returns what it did, for the
 * audit.
 */
export interface PeopleInsert extends DirectoryInsert {
  /** Throws CONFLICT if the login is taken, BAD_REQUEST for a password that is rejected. */
  addPerson(person: NewPerson): Promise<readonly EntryChange[]>
  /** Throws NOT_FOUND, and BAD_REQUEST for a password that is rejected. */
  setPassword(login: string, password: string): Promise<readonly EntryChange[]>
  /** No changes if there was no such user. */
  removePerson(login: string): Promise<readonly EntryChange[]>
  listPeople(limit: number, after?: string): Promise<PeoplePage>
}

/** A user to add to the insert. */
export interface NewPerson {
  readonly login: string
  readonly attributes: ReadonlyMap<string, readonly string[]>
  readonly groups: readonly string[]
  /** Undefined for a user who can't log in by password. */
  readonly password: string | undefined
}

/** A page of the users of an insert. */
export interface PeoplePage {
  readonly people: readonly { readonly login: string; readonly entry: InsertEntry; readonly hasPassword: boolean }[]
  readonly next?: string | undefined
}

/** Whether the insert stores users itself. */
export const keepsPeople = (insert: DirectoryInsert): insert is PeopleInsert => 'addPerson' in insert

/** What an insert may use of Gatehouse; all `targets` already exist. */
export interface InsertHost extends TargetHost {
  /** The suffix of the insert. */
  readonly suffix: Dn
  /** Whether the public listener is a loopback address. Absent counts as no. */
  readonly loopbackOnly?: boolean | undefined
}

/** An insert whose parameters are checked. */
export type PreparedInsert = Prepared<DirectoryInsert, InsertHost>
/** A kind of insert, as the catalog lists it. */
export type DirectoryInsertModule = Module<DirectoryInsert, InsertHost>

/** Describes a kind of insert. */
export const defineDirectoryInsert = <C>(
  definition: ModuleDefinition<C, DirectoryInsert, InsertHost>,
): DirectoryInsertModule => defineModule(definition)
