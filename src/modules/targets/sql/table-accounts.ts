import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import type { NamedGroup } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { SqlDialect, SqlReader, SqlTransaction } from '#protocols/sql/sql-database.ts'
import type { AccountStore, UserUpdate } from './account-store.ts'
import { held, heldValues, refuse } from './bad-value.ts'
import { type Column, decode } from './column.ts'
import { type Layout, makesOwnKey, type UserLayout, type ValuesLayout } from './layout.ts'
import { Memberships } from './memberships.ts'
import { tableId } from './table-name.ts'
import { bound, equals, insertInto, type Sql, textIn } from './table-sql.ts'
import { firstTimes, nextTime } from './table-times.ts'
import { deleteValues, writeValues } from './table-values.ts'
import { firstVersion, nextVersion } from './table-version.ts'
import { UserRows } from './user-rows.ts'

const maxMemberships = 10_000

/** Users in tables that somebody else made. */
export class TableAccounts implements AccountStore {
  readonly renames: boolean
  readonly keepsVersions: boolean
  readonly attributes: ReadonlySet<string>
  readonly #users: UserLayout
  readonly #dialect: SqlDialect
  readonly #rows: UserRows
  readonly #memberships: Memberships | undefined
  readonly #columns: ReadonlyMap<string, Column>
  readonly #values: ReadonlyMap<string, ValuesLayout>

  constructor(layout: Layout, dialect: SqlDialect) {
    const { users, groups } = layout
    this.#users = users
    this.#dialect = dialect
    this.#rows = new UserRows(layout, dialect)
    this.#memberships = groups === undefined ? undefined : new Memberships(groups, layout)
    this.#columns = new Map(users.columns.map(({ attribute, column }) => [attribute.toLowerCase(), column]))
    this.#values = new Map(users.values.map((values) => [values.attribute.toLowerCase(), values]))
    this.attributes = new Set([...this.#columns.keys(), ...this.#values.keys()])
    // What refers to a login would have to change with it.
    this.renames = users.id !== users.name && groups?.userRef !== users.name && !users.name.generated
    this.keepsVersions = users.version !== undefined
  }

  written = (attributes: readonly string[]): readonly string[] =>
    attributes.filter((name) => this.#columns.get(name.toLowerCase()) !== this.#users.name)

  held(user: User, attributes: readonly string[], newUserID = user.userID): User {
    const kept = new Attributes()
    for (const name of attributes) {
      const values = user.attributes.values(name)
      const isLogin = this.#columns.get(name.toLowerCase()) === this.#users.name
      if (!isLogin) kept.set(name, this.#held(name, values))
      else if (values.some((value) => value !== user.userID && value !== newUserID))
        refuse(name, 'is the login, and differs from it')
    }
    if (user.groups.length > 0 && this.#memberships === undefined)
      refuse('groups', 'cannot be stored: no groups are kept')
    if (user.groups.length > maxMemberships) refuse('groups', `are more than ${maxMemberships}`)
    return {
      userID: held('userID', this.#users.name, user.userID),
      attributes: kept,
      groups: [...new Set(user.groups)],
    }
  }

  #held(name: string, values: readonly string[]): readonly string[] {
    const list = this.#values.get(name.toLowerCase())
    if (list !== undefined) return heldValues(name, list.value, values)
    if (values.length === 0) return values
    const column = this.#columns.get(name.toLowerCase())
    if (column === undefined) return refuse(name, 'cannot be stored: it has no column')
    const kept = heldValues(name, column, values)
    return kept.length > 1 ? refuse(name, 'can have one value only') : kept
  }

  isMultiValued = (attribute: string): boolean => this.#values.has(attribute.toLowerCase())

  keepsOrder = (attribute: string): boolean => this.#values.get(attribute.toLowerCase())?.position !== undefined

  hasDefault(attribute: string): boolean {
    const column = this.#columns.get(attribute.toLowerCase())
    return column?.required === true && column.hasDefault
  }

  async lock(tx: SqlTransaction, userID: string): Promise<void> {
    if (tx.dialect === 'sqlite') return
    // For two who create the same user; the row lock is for those who do not go through here.
    const key = createHash('sha256')
      .update(`gatehouse ${this.#users.table.table} ${userID.toLowerCase()}`)
      .digest()
      .readBigInt64BE()
    await tx.query(sql`select pg_advisory_xact_lock(cast(${String(key)} as bigint))`)
    await tx.query(
      sql`select 1 as one from ${tableId(this.#users.table)} as u where ${equals('u', this.#users.name, userID, tx.dialect)} for update`,
    )
  }

  async find(reader: SqlReader, by: 'login' | 'id', value: string): Promise<User | undefined> {
    const column = by === 'login' ? this.#users.name : this.#users.id
    const rows = await reader.query(
      sql`select ${this.#rows.columns} from ${tableId(this.#users.table)} as u where ${equals('u', column, value, this.#dialect)} limit 2`,
    )
    const [row, second] = rows
    if (second !== undefined) throw new GatewayError('TARGET_FAILED', `several users have the same ${by}`)
    return row === undefined ? undefined : this.#rows.toUser(row)
  }

  /**
   * As the column compares logins, and where that finds nobody, letter case of ASCII aside: then the only one that is
   * alike. Somebody who is looked for is the same person in other letters.
   */
  async findAlike(reader: SqlReader, login: string): Promise<User | undefined> {
    const found = await this.find(reader, 'login', login)
    if (found !== undefined) return found
    const [alike, second] = await this.#alike(reader, login)
    return second === undefined ? alike : undefined
  }

  async isTaken(reader: SqlReader, login: string, except?: string): Promise<boolean> {
    return (await this.#alike(reader, login)).some(({ id }) => id !== except)
  }

  /** Two of them at most. */
  async #alike(reader: SqlReader, login: string): Promise<readonly User[]> {
    const hasOtherLetters = /[a-z]/i.test(login) && /^\p{ASCII}*$/u.test(login) && !login.includes('\0')
    if (!hasOtherLetters) return []
    const text = textIn('u', this.#users.name, this.#dialect)
    const folded = this.#dialect === 'postgres' ? sql`lower(${text} collate "C")` : sql`lower(${text})`
    const rows = await reader.query(
      sql`select ${this.#rows.columns} from ${tableId(this.#users.table)} as u where ${folded} = ${login.toLowerCase()} limit 2`,
    )
    return rows.map((row) => this.#rows.toUser(row))
  }

  async isNamed(tx: SqlTransaction, group: NamedGroup): Promise<boolean | undefined> {
    return this.#memberships?.isNamed(tx, group)
  }

  async insert(tx: SqlTransaction, user: User, attributes: readonly string[]): Promise<void> {
    const { table, name, id, version, times } = this.#users
    const key = id !== name && makesOwnKey(id) ? [[id, bound(id, newId(), tx.dialect)] as const] : []
    const insert = insertInto(tableId(table), [
      [name, bound(name, user.userID, tx.dialect)],
      ...key,
      ...this.#columnValues(user, attributes),
      ...firstVersion(version, tx.dialect),
      ...firstTimes(times, tx.dialect),
    ])
    const [row] = await tx.query(sql`${insert} returning cast(${sql.id(id.name)} as text) as id`)
    const made = { ...user, id: decode(id, String(row?.['id'] ?? '')) }
    for (const [name, values] of user.attributes) {
      const list = this.#values.get(name.toLowerCase())
      if (list !== undefined) await writeValues(tx, list, made.id, [], values)
    }
    // Somebody of the same login may have left memberships behind, which are not this user's.
    await this.#memberships?.leaveAll(tx, made)
    await this.#memberships?.touch(tx, user.groups)
    await this.#memberships?.join(tx, made, user.groups)
  }

  /** Empty ones are written as well, so that no default comes in where none is wanted; except where there must be one. */
  #columnValues(user: User, attributes: readonly string[]): (readonly [Column, Sql])[] {
    const written = new Map<Column, Sql>()
    for (const name of attributes) {
      const column = this.#columns.get(name.toLowerCase())
      const value = user.attributes.first(name)
      if (column === undefined || (value === undefined && column.required)) continue
      written.set(column, value === undefined ? sql`null` : bound(column, value, this.#dialect))
    }
    return [...written]
  }

  async update(tx: SqlTransaction, user: User, { attributes, join, leave, newUserID }: UserUpdate): Promise<void> {
    const { table, name: login, id, version, times } = this.#users
    const sets =
      newUserID === undefined
        ? []
        : [sql`${sql.id(login.name)} = ${bound(login, held('userID', login, newUserID), tx.dialect)}`]
    for (const [name, values] of attributes) {
      const column = this.#columns.get(name.toLowerCase())
      const list = this.#values.get(name.toLowerCase())
      if (list !== undefined) await writeValues(tx, list, keyOf(user), user.attributes.values(name), values)
      if (column === undefined) continue
      const [value] = values
      if (value === undefined && column.required) refuse(name, 'must have a value')
      sets.push(sql`${sql.id(column.name)} = ${value === undefined ? sql`null` : bound(column, value, tx.dialect)}`)
    }
    await this.#memberships?.touch(tx, [...leave, ...join])
    await this.#memberships?.leave(tx, user, leave)
    await this.#memberships?.join(tx, user, join)
    sets.push(...nextVersion(version, tx.dialect), ...nextTime(times, tx.dialect))
    if (sets.length === 0) return
    await tx.run(
      sql`update ${tableId(table)} set ${sql.join(sets)} where ${sql.id(id.name)} = ${bound(id, keyOf(user), tx.dialect)}`,
    )
  }

  async delete(tx: SqlTransaction, user: User): Promise<void> {
    const { table, id, values } = this.#users
    for (const list of values) await deleteValues(tx, list, keyOf(user))
    await this.#memberships?.leaveAll(tx, user)
    await tx.run(sql`delete from ${tableId(table)} where ${sql.id(id.name)} = ${bound(id, keyOf(user), tx.dialect)}`)
  }

  /** False when there is no such user. */
  async setPassword(tx: SqlTransaction, userID: string, column: Column, value: string): Promise<boolean> {
    const { table, name, version, times } = this.#users
    const sets = [
      sql`${sql.id(column.name)} = ${bound(column, value, tx.dialect)}`,
      ...nextVersion(version, tx.dialect),
      ...nextTime(times, tx.dialect),
    ]
    const found = await tx.run(
      sql`update ${tableId(table)} set ${sql.join(sets)} where ${sql.id(name.name)} = ${bound(name, held('userID', name, userID), tx.dialect)}`,
    )
    return found > 0
  }
}

const keyOf = (user: User): string => user.id ?? user.userID
