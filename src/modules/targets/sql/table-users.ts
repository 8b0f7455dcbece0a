import { createHash } from 'node:crypto'
import sql, { join as joinSql, type Sql } from 'sql-template-tag'
import { Attributes } from '#identity/attributes.ts'
import type { NamedGroup } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { SqlDialect, SqlReader, SqlTransaction } from '#protocols/sql/sql-database.ts'
import { identifier } from '#protocols/sql/sql-database.ts'
import {
  acceptValue,
  acceptValues,
  bound,
  type Column,
  decode,
  equals,
  equalsExactly,
  insertInto,
  refuse,
  textIn,
} from './column.ts'
import { firstTimes, firstVersion, nextTime, nextVersion, UserRows } from './entry-rows.ts'
import { type GroupLayout, type Layout, makesOwnKey, type UserLayout, type ValuesLayout } from './layout.ts'
import { tableId } from './tables-config.ts'
import type { SqlUsers, UserUpdate } from './user-store.ts'

const maxMemberships = 10_000

/** Users in existing tables. */
export class TableUsers implements SqlUsers {
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
    // References to the login would have to change with it.
    this.renames = users.id !== users.name && groups?.userRef !== users.name && !users.name.generated
    this.keepsVersions = users.version !== undefined
  }

  written = (attributes: readonly string[]): readonly string[] =>
    attributes.filter((name) => this.#columns.get(name.toLowerCase()) !== this.#users.name)

  accept(user: User, attributes: readonly string[], newUserID = user.userID): User {
    const kept = new Attributes()
    for (const name of attributes) {
      const values = user.attributes.values(name)
      const isLogin = this.#columns.get(name.toLowerCase()) === this.#users.name
      if (!isLogin) kept.set(name, this.#accept(name, values))
      else if (values.some((value) => value !== user.userID && value !== newUserID))
        refuse(name, 'is the login, and differs from it')
    }
    if (user.groups.length > 0 && this.#memberships === undefined)
      refuse('groups', 'cannot be stored: no groups are kept')
    if (user.groups.length > maxMemberships) refuse('groups', `are more than ${maxMemberships}`)
    return {
      userID: acceptValue('userID', this.#users.name, user.userID),
      attributes: kept,
      groups: [...new Set(user.groups)],
    }
  }

  #accept(name: string, values: readonly string[]): readonly string[] {
    const list = this.#values.get(name.toLowerCase())
    if (list !== undefined) return acceptValues(name, list.value, values)
    if (values.length === 0) return values
    const column = this.#columns.get(name.toLowerCase())
    if (column === undefined) return refuse(name, 'cannot be stored: it has no column')
    const kept = acceptValues(name, column, values)
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
    // For concurrent creates of the same user; the row lock is for other writers of the table.
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

  /** By the column's comparison or, if that finds no user, ignoring ASCII letter case if that finds exactly one. */
  async findAlike(reader: SqlReader, login: string): Promise<User | undefined> {
    const found = await this.find(reader, 'login', login)
    if (found !== undefined) return found
    const [alike, second] = await this.#alike(reader, login)
    return second === undefined ? alike : undefined
  }

  async isTaken(reader: SqlReader, login: string, except?: string): Promise<boolean> {
    return (await this.#alike(reader, login)).some(({ id }) => id !== except)
  }

  /** At most two. */
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
    const [row] = await tx.query(sql`${insert} returning cast(${identifier(id.name)} as text) as id`)
    const made = { ...user, id: decode(id, String(row?.['id'] ?? '')) }
    for (const [name, values] of user.attributes) {
      const list = this.#values.get(name.toLowerCase())
      if (list !== undefined) await writeValues(tx, list, made.id, [], values)
    }
    // A deleted user of the same login may have left memberships behind.
    await this.#memberships?.leaveAll(tx, made)
    await this.#memberships?.touch(tx, user.groups)
    await this.#memberships?.join(tx, made, user.groups)
  }

  /** Empty values are written as well, so that no default replaces them, except in required columns. */
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
        : [sql`${identifier(login.name)} = ${bound(login, acceptValue('userID', login, newUserID), tx.dialect)}`]
    for (const [name, values] of attributes) {
      const column = this.#columns.get(name.toLowerCase())
      const list = this.#values.get(name.toLowerCase())
      if (list !== undefined) await writeValues(tx, list, keyOf(user), user.attributes.values(name), values)
      if (column === undefined) continue
      const [value] = values
      if (value === undefined && column.required) refuse(name, 'must have a value')
      sets.push(sql`${identifier(column.name)} = ${value === undefined ? sql`null` : bound(column, value, tx.dialect)}`)
    }
    await this.#memberships?.touch(tx, [...leave, ...join])
    await this.#memberships?.leave(tx, user, leave)
    await this.#memberships?.join(tx, user, join)
    sets.push(...nextVersion(version, tx.dialect), ...nextTime(times, tx.dialect))
    if (sets.length === 0) return
    await tx.run(
      sql`update ${tableId(table)} set ${joinSql(sets)} where ${identifier(id.name)} = ${bound(id, keyOf(user), tx.dialect)}`,
    )
  }

  async delete(tx: SqlTransaction, user: User): Promise<void> {
    const { table, id, values } = this.#users
    for (const list of values) await deleteValues(tx, list, keyOf(user))
    await this.#memberships?.leaveAll(tx, user)
    await tx.run(
      sql`delete from ${tableId(table)} where ${identifier(id.name)} = ${bound(id, keyOf(user), tx.dialect)}`,
    )
  }

  /** False if the user doesn't exist. */
  async setPassword(tx: SqlTransaction, userID: string, column: Column, value: string): Promise<boolean> {
    const { table, name, version, times } = this.#users
    const sets = [
      sql`${identifier(column.name)} = ${bound(column, value, tx.dialect)}`,
      ...nextVersion(version, tx.dialect),
      ...nextTime(times, tx.dialect),
    ]
    const found = await tx.run(
      sql`update ${tableId(table)} set ${joinSql(sets)} where ${identifier(name.name)} = ${bound(name, acceptValue('userID', name, userID), tx.dialect)}`,
    )
    return found > 0
  }
}

const keyOf = (user: User): string => user.id ?? user.userID

/**
 * Changes the rows of one attribute of one user from the stored values to the wanted ones. Rows stay if possible, with
 * their other columns; if a number defines the order and it can't be kept, all are written again.
 */
async function writeValues(
  tx: SqlTransaction,
  layout: ValuesLayout,
  user: string,
  present: readonly string[],
  wanted: readonly string[],
): Promise<void> {
  const kept = present.filter((value) => wanted.includes(value))
  const inOrder = layout.position === undefined || kept.every((value, i) => value === wanted[i])
  if (!inOrder) {
    await tx.run(sql`delete from ${tableId(layout.table)} where ${ofUser(tx, layout, user)}`)
    return insertValues(tx, layout, user, wanted, 0)
  }
  for (const value of present) {
    if (wanted.includes(value)) continue
    const isValue = equalsExactly(layout.value, value, tx.dialect)
    await tx.run(sql`delete from ${tableId(layout.table)} where ${ofUser(tx, layout, user)} and ${isValue}`)
  }
  const added = wanted.filter((value) => !kept.includes(value))
  if (added.length > 0) await insertValues(tx, layout, user, added, await nextPosition(tx, layout, user))
}

async function deleteValues(tx: SqlTransaction, layout: ValuesLayout, user: string): Promise<void> {
  await tx.run(sql`delete from ${tableId(layout.table)} where ${ofUser(tx, layout, user)}`)
}

const ofUser = (tx: SqlTransaction, { user: column }: ValuesLayout, user: string): Sql =>
  sql`${identifier(column.name)} = ${bound(column, user, tx.dialect)}`

/** Rows per statement. */
const batch = 200

async function insertValues(
  tx: SqlTransaction,
  { table, user: userColumn, value: valueColumn, position }: ValuesLayout,
  user: string,
  values: readonly string[],
  first: number,
): Promise<void> {
  const columns = [userColumn, valueColumn, ...(position === undefined ? [] : [position])]
  const rows = values.map((value, i) => {
    const texts = [user, value, String(first + i)]
    return sql`(${joinSql(columns.map((column, j) => bound(column, texts[j] ?? '', tx.dialect)))})`
  })
  const into = sql`${tableId(table)} (${joinSql(columns.map(({ name }) => identifier(name)))})`
  for (let done = 0; done < rows.length; done += batch) {
    await tx.run(sql`insert into ${into} values ${joinSql(rows.slice(done, done + batch))}`)
  }
}

async function nextPosition(tx: SqlTransaction, layout: ValuesLayout, user: string): Promise<number> {
  if (layout.position === undefined) return 0
  const last = sql`max(${identifier(layout.position.name)})`
  const rows = await tx.query(
    sql`select cast(${last} as text) as last from ${tableId(layout.table)} where ${ofUser(tx, layout, user)}`,
  )
  const number = rows[0]?.['last']
  return typeof number === 'string' ? Number(number) + 1 : 0
}

type OwnGroups = NonNullable<GroupLayout['own']>

/** Who is in which group. */
class Memberships {
  readonly #groups: GroupLayout
  readonly #byLogin: boolean

  constructor(groups: GroupLayout, { users }: Layout) {
    this.#groups = groups
    this.#byLogin = groups.userRef === users.name
  }

  /**
   * Gives these groups a new version and time, since their members are about to change. Always in the same order, so
   * that writers can't deadlock.
   */
  async touch(tx: SqlTransaction, names: readonly string[]): Promise<void> {
    const { own } = this.#groups
    if (own === undefined) return
    const sets = [...nextVersion(own.version, tx.dialect), ...nextTime(own.times, tx.dialect)]
    if (sets.length === 0) return
    for (const name of [...new Set(names)].sort()) {
      await tx.run(
        sql`update ${tableId(own.table)} as g set ${joinSql(sets)} where ${equals('g', own.name, name, tx.dialect)}`,
      )
    }
  }

  /** Throws BAD_REQUEST for a missing group that is not to be created. */
  async join(tx: SqlTransaction, user: User, names: readonly string[]): Promise<void> {
    const { members, own } = this.#groups
    // In the same order everywhere, which avoids deadlocks.
    for (const name of names.toSorted()) {
      const group = own === undefined ? acceptValue('groups', members.group, name) : await this.#refOf(tx, own, name)
      await tx.run(
        insertInto(tableId(members.table), [
          [members.user, bound(members.user, this.#userRef(user), tx.dialect)],
          [members.group, bound(members.group, group, tx.dialect)],
        ]),
      )
    }
  }

  async leave(tx: SqlTransaction, user: User, names: readonly string[]): Promise<void> {
    const { members, own } = this.#groups
    for (const name of names.toSorted()) {
      const isGroup =
        own === undefined
          ? sql`${identifier(members.group.name)} = ${bound(members.group, name, tx.dialect)}`
          : sql`${identifier(members.group.name)} in (select ${identifier('g', own.ref.name)} from ${tableId(own.table)} as g where ${equals('g', own.name, name, tx.dialect)})`
      await tx.run(sql`delete from ${tableId(members.table)} where ${this.#ofUser(tx, user)} and ${isGroup}`)
    }
  }

  async leaveAll(tx: SqlTransaction, user: User): Promise<void> {
    const { members, own } = this.#groups
    const sets = nextVersion(own?.version, tx.dialect)
    if (own !== undefined && sets.length > 0) {
      const held = sql`select ${identifier(members.group.name)} from ${tableId(members.table)} where ${this.#ofUser(tx, user)}`
      await tx.run(
        sql`update ${tableId(own.table)} as g set ${joinSql(sets)} where ${identifier('g', own.ref.name)} in (${held})`,
      )
    }
    await tx.run(sql`delete from ${tableId(this.#groups.members.table)} where ${this.#ofUser(tx, user)}`)
  }

  async isNamed(tx: SqlTransaction, group: NamedGroup): Promise<boolean | undefined> {
    const { own } = this.#groups
    if (own === undefined || own.id === own.name) return undefined
    const rows = await tx.query(
      sql`select ${textIn('g', own.name, tx.dialect)} as name from ${tableId(own.table)} as g where ${equals('g', own.id, group.id, tx.dialect)}${shared(tx)}`,
    )
    const name = rows[0]?.['name']
    return typeof name === 'string' && decode(own.name, name) === group.name
  }

  /** The value by which memberships refer to the group. The group can't be deleted until the transaction ends. */
  async #refOf(tx: SqlTransaction, own: OwnGroups, name: string): Promise<string> {
    const rows = await tx.query(
      sql`select ${textIn('g', own.ref, tx.dialect)} as ref from ${tableId(own.table)} as g where ${equals('g', own.name, name, tx.dialect)}${shared(tx)}`,
    )
    const ref = rows[0]?.['ref']
    if (typeof ref === 'string') return decode(own.ref, ref)
    if (!own.createMissing) refuse('groups', `names a group that is not there: "${name.slice(0, 100)}"`)
    return insertGroup(tx, own, acceptValue('groups', own.name, name), [])
  }

  #ofUser(tx: SqlTransaction, user: User): Sql {
    const { user: column } = this.#groups.members
    return sql`${identifier(column.name)} = ${bound(column, this.#userRef(user), tx.dialect)}`
  }

  #userRef = (user: User): string => (this.#byLogin ? user.userID : (user.id ?? user.userID))
}

/** Locks the read rows against deletion; SQLite has one writer at a time anyway. */
const shared = (tx: SqlTransaction): Sql => (tx.dialect === 'postgres' ? sql` for key share` : sql``)

/** The value by which memberships refer to the new group. */
export async function insertGroup(
  tx: SqlTransaction,
  own: OwnGroups,
  name: string,
  values: Parameters<typeof insertInto>[1],
): Promise<string> {
  const id = own.id !== own.name && makesOwnKey(own.id) ? [[own.id, bound(own.id, newId(), tx.dialect)] as const] : []
  const insert = insertInto(tableId(own.table), [
    [own.name, bound(own.name, name, tx.dialect)],
    ...id,
    ...values,
    ...firstVersion(own.version, tx.dialect),
    ...firstTimes(own.times, tx.dialect),
  ])
  const [row] = await tx.query(sql`${insert} returning cast(${identifier(own.ref.name)} as text) as ref`)
  return decode(own.ref, String(row?.['ref'] ?? ''))
}
