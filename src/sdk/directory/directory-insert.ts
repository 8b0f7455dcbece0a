import type { DirectoryPage, DirectoryPageSearch, InsertEntry } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import type { UserChange } from '#identity/user-directory.ts'
import type { Closable } from '#kernel/scope.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module/module.ts'
import type { StoredAccount } from '#sdk/target/target.ts'
import type { TargetHost } from '#sdk/target/target-module.ts'

/**
 * A part of the virtual directory: everything at and below one suffix. All names that it is given, and all that it gives,
 * in DN-valued attributes too, are names of the virtual tree; where its own system has others, it translates both ways.
 * Names of attributes are its own system's: the directory renames them by the insert's `mapping`.
 *
 * Failures are thrown as GatewayError: TARGET_UNREACHABLE when the system does not answer (never an empty answer, since
 * "nobody" and "nobody could be asked" are different things to whoever decides by it), TARGET_FAILED when it refuses,
 * BAD_REQUEST for a filter or position that it cannot serve. Every wait is bounded.
 */
export interface DirectoryInsert extends Closable {
  /**
   * Entries at or below `base`, which is at or below the suffix, in a stable order, at most `limit` (from 1 to 1,000) of
   * them. `attributes` are those wanted, of which objectClass and the entry's identifier always are two; more may come. The filter is exact: what the
   * system cannot filter is finished here; names in it are compared as names (RFC 4514), however they are written. A page
   * may be short, or even empty, and still have a `next`. A `base` that does not exist has no entries. The members of a group are owed
   * only where it is read by its name (scope `base`).
   */
  search(search: DirectoryPageSearch): Promise<DirectoryPage<InsertEntry>>
  /**
   * Whether the static group, which is at or below the suffix, holds the member, which may stand anywhere. False when
   * there is no such group. Without reading all members.
   */
  isMember(group: Dn, member: Dn): Promise<boolean>
  /** The static group's members, at most this many; names of anywhere. None when there is no such group. */
  members(group: Dn, limit: number): Promise<readonly Dn[]>
  /**
   * Whether this is the entry's password. False for an entry that does not exist, has no password or is locked, after the
   * same time. Never called with an empty password. Absent where the system checks none. `local: false` says that the
   * caller is not on this machine.
   */
  bind?(dn: Dn, password: string, caller?: { readonly local: boolean }): Promise<boolean>
  /**
   * Sets the password that `bind` checks. With an `id`, only while the entry has it: NOT_FOUND otherwise, as for an entry
   * that doesn't exist. BAD_REQUEST for a password that the system rejects. Absent where the insert can't write passwords.
   */
  setEntryPassword?(dn: Dn, password: string, id: string | undefined): Promise<void>
  /** The name of the entry that shows this account of a target; undefined where the insert doesn't show it. */
  entryOf?(account: TargetAccount): Dn | undefined
}

/** An account of a target, as far as it is known. */
export interface TargetAccount {
  readonly target: string
  readonly userID: string
  readonly stored: StoredAccount | undefined
}

/** People, groups and passwords that can be changed from the command line. Each change tells what it did, for the audit. */
export interface PeopleInsert extends DirectoryInsert {
  /** Throws CONFLICT when the login is taken, BAD_REQUEST for a password that is not taken. */
  addPerson(person: NewPerson): Promise<readonly UserChange[]>
  /** Throws NOT_FOUND, BAD_REQUEST for a password that is not taken. */
  setPassword(login: string, password: string): Promise<readonly UserChange[]>
  /** No changes when there was nobody. */
  removePerson(login: string): Promise<readonly UserChange[]>
  listPeople(limit: number, after?: string): Promise<PeoplePage>
}

export interface NewPerson {
  readonly login: string
  readonly attributes: ReadonlyMap<string, readonly string[]>
  readonly groups: readonly string[]
  /** Undefined for somebody who cannot log in by password. */
  readonly password: string | undefined
}

export interface PeoplePage {
  readonly people: readonly { readonly login: string; readonly entry: InsertEntry; readonly hasPassword: boolean }[]
  readonly next?: string
}

export const keepsPeople = (insert: DirectoryInsert): insert is PeopleInsert => 'addPerson' in insert

/** What an insert may ask of Gatehouse; `targets` are all there by now. */
export interface InsertHost extends TargetHost {
  /** Where the insert stands. */
  readonly suffix: Dn
  /** Whether the public listener is a loopback address. Absent counts as no. */
  readonly loopbackOnly?: boolean | undefined
}

export type PreparedInsert = Prepared<DirectoryInsert, InsertHost>
export type DirectoryInsertModule = Module<DirectoryInsert, InsertHost>

export const defineDirectoryInsert = <C>(
  definition: ModuleDefinition<C, DirectoryInsert, InsertHost>,
): DirectoryInsertModule => defineModule(definition)
