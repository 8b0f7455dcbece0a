import type { Filter } from '#identity/filter/ast.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'

export interface UserDirectoryOptions {
  /** Users of one name space do not see those of another. */
  readonly name: string
  /** `postgres://…` or a file of SQLite; Gatehouse's own database when absent. */
  readonly url?: string
}

export interface UserSearch {
  readonly filter?: Filter
  readonly offset: number
  readonly limit: number
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly total: number
}

/** What changed, told inside the transaction that changed it, so that the audit says what really happened. */
export interface UserChange {
  readonly subject: 'entry' | 'attribute' | 'group'
  readonly action: 'add' | 'replace' | 'delete'
  readonly attribute: string
  readonly value?: string
}

export interface UserSync {
  readonly userID: string
  /** Attributes to bring to the given values; an empty list clears one (unless addOnly). */
  readonly attributes: ReadonlyMap<string, readonly string[]>
  /** Undefined leaves memberships alone. */
  readonly groups: readonly string[] | undefined
  readonly addOnly: boolean
  readonly expectedVersion?: string
}

/**
 * Users, groups and memberships in a database. Logins and group names are unique without regard to case, and keep the
 * case they were written with. Ids are made by the store and never reused. Every method is one transaction.
 * Any attribute can be filtered on, and an equality or prefix filter is served by an index.
 */
export interface UserDirectory {
  findByLogin(userID: string): Promise<User | undefined>
  findById(id: string): Promise<User | undefined>
  /** Ordered by id, which is the order of creation. */
  searchUsers(search: UserSearch): Promise<Page<User>>
  /** Throws CONFLICT when the login is taken. Groups that do not exist are created. */
  create(user: User): Promise<readonly UserChange[]>
  /** Throws NOT_FOUND when there is no such user, VERSION_MISMATCH when it has another version. */
  sync(change: UserSync): Promise<readonly UserChange[]>
  /** No changes when there is no such user. */
  delete(userID: string): Promise<readonly UserChange[]>

  findGroupByName(name: string): Promise<Group | undefined>
  findGroupById(id: string): Promise<Group | undefined>
  /** Groups come without their members. */
  searchGroups(search: UserSearch): Promise<Page<Group>>
  /** Throws CONFLICT when the name is taken. */
  createGroup(name: string, attributes: ReadonlyMap<string, readonly string[]>): Promise<Group>
  deleteGroup(name: string): Promise<boolean>
  /** Adds and removes members by login, without reading the others. Throws NOT_FOUND for an unknown group or login. */
  changeMembers(
    group: string,
    change: { add: readonly string[]; remove: readonly string[] },
  ): Promise<readonly UserChange[]>

  close(): Promise<void>
}
