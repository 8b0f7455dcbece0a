import type { User } from '#identity/user.ts'
import type { NamedGroup } from '#identity/user-directory.ts'
import type { SqlReader, SqlTransaction } from '#protocols/sql/sql-database.ts'

/** What is to change about a user. */
export interface UserUpdate {
  /** All values that these attributes have from now on. */
  readonly attributes: ReadonlyMap<string, readonly string[]>
  readonly join: readonly string[]
  readonly leave: readonly string[]
  readonly newUserID: string | undefined
}

/** How users are kept in a database: in tables that are described, or behind statements that are given. */
export interface AccountStore {
  readonly renames: boolean
  readonly keepsVersions: boolean
  /** Attributes that have a place, in lower case; those that are the login by another name are among them. */
  readonly attributes: ReadonlySet<string>
  /** Without those that are the login by another name. */
  written(attributes: readonly string[]): readonly string[]
  /**
   * The user with these attributes alone, and with their values as they will be read back. Throws BAD_REQUEST, by name,
   * for what cannot be held, and for an attribute that is the login and is neither the present nor the new one.
   */
  held(user: User, attributes: readonly string[], newUserID?: string): User
  isMultiValued(attribute: string): boolean
  /** The order of the attribute's values is kept. */
  keepsOrder(attribute: string): boolean
  /** A new user has a value of it even when none is given. */
  hasDefault(attribute: string): boolean
  /** Makes whoever else changes or creates the user here wait. */
  lock(tx: SqlTransaction, userID: string): Promise<void>
  /** Whether somebody but the one of this id has the login in other letters: to all but the database they are one. */
  isTaken(reader: SqlReader, login: string, except?: string): Promise<boolean>
  find(reader: SqlReader, by: 'login' | 'id', value: string): Promise<User | undefined>
  /** Whether the group has this name; undefined where groups have no ids of their own. */
  isNamed(tx: SqlTransaction, group: NamedGroup): Promise<boolean | undefined>
  /** Writes these attributes and the groups of a user that is not there. */
  insert(tx: SqlTransaction, user: User, attributes: readonly string[]): Promise<void>
  update(tx: SqlTransaction, user: User, update: UserUpdate): Promise<void>
  delete(tx: SqlTransaction, user: User): Promise<void>
}
