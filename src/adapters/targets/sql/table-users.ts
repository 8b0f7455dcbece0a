import sql, { join as joinSql, type Sql } from 'sql-template-tag'
import type { AcceptedUser } from '#adapters/targets/shared/user-reconciler.ts'
import { Attributes } from '#identity/attributes.ts'
import type { NamedGroup } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlReader, SqlTransaction } from '#protocols/sql/sql-database.ts'
import { identifier } from '#protocols/sql/sql-database.ts'
import {
  acceptValue,
  acceptValues,
  allOf,
  bound,
  type Column,
  decode,
  equals,
  equalsExactly,
  equalTo,
  insertInto,
  refuse,
  textIn,
} from './column.ts'
import {
  type ColumnValues,
  deleteEntry,
  insertEntry,
  nextTime,
  nextVersion,
  UserRows,
  updateEntry,
} from './entry-rows.ts'
import type { Layout } from './layout.ts'
import { type GroupTable, type GroupTables, tableId, type UserTable, type ValuesTable } from './tables.ts'
import { lockName, type SqlUsers, type StorageRule, type UserUpdate } from './user-store.ts'

const maxMemberships = 10_000

/** Users in existing tables. */
export class TableUsers implements SqlUsers {
  readonly renames: boolean
  readonly attributes: ReadonlySet<string>
  /** The defaults of columns that need a value, by attribute in lower case. */
  readonly defaults: ReadonlyMap<string, string>
  readonly #users: UserTable<Column>
  readonly #rows: UserRows
  readonly #memberships: Memberships | undefined
  readonly #columns: ReadonlyMap<string, Column>
  readonly #values: ReadonlyMap<string, ValuesTable<Column>>

  constructor(layout: Layout) {
    const { users, groups } = layout
    this.#users = users
    this.#rows = new UserRows(layout)
    this.#memberships = groups === undefined ? undefined : new Memberships(groups, layout)
    this.#columns = new Map(Array.from(users.columns, ([attribute, column]) => [attribute.toLowerCase(), column]))
    this.#values = new Map(Array.from(users.values, ([attribute, values]) => [attribute.toLowerCase(), values]))
    this.attributes = new Set([...this.#columns.keys(), ...this.#values.keys()])
    const texts = [...this.#columns].filter(([, column]) => column.required && column.defaultText !== undefined)
    this.defaults = new Map(texts.map(([attribute, { defaultText = '' }]) => [attribute, defaultText]))
    // References to the login would have to change with it.
    this.renames = users.id !== users.name && groups?.userRef !== users.name && !users.name.generated
  }

  accept(user: User, listed: readonly string[], newUserID = user.userID): AcceptedUser {
    const isLogin = (name: string) => this.#columns.get(name.toLowerCase()) === this.#users.name
    const attributes = listed.filter((name) => !isLogin(name))
    const kept = new Attributes()
    for (const name of listed) {
      const values = user.attributes.values(name)
      if (!isLogin(name)) kept.set(name, this.#accept(name, values))
      else if (values.some((value) => value !== user.userID && value !== newUserID))
        refuse(name, 'is the login, and differs from it')
    }
    if (user.groups.length > 0 && this.#memberships === undefined)
      refuse('groups', 'cannot be stored: no groups are kept')
    if (user.groups.length > maxMemberships) refuse('groups', `are more than ${maxMemberships}`)
    const userID = acceptValue('userID', this.#users.name, user.userID)
    return { user: { userID, attributes: kept, groups: [...new Set(user.groups)] }, attributes }
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

  ruleOf(attribute: string): StorageRule {
    const column = this.#columns.get(attribute.toLowerCase())
    const list = this.#values.get(attribute.toLowerCase())
    return {
      isMultiValued: list !== undefined,
      keepsOrder: list?.position !== undefined,
      hasDefault: column?.required === true && column.hasDefault,
    }
  }

  async lock(tx: SqlTransaction, userID: string): Promise<void> {
    // For concurrent creates of the same user; the row lock is for other writers of the table.
    const { table, name } = this.#users
    await lockName(tx, table.table, userID.toLowerCase())
    if (tx.dialect === 'sqlite') return
    await tx.query(sql`select 1 as one from ${tableId(table)} as u where ${equals('u', name, userID)} for update`)
  }

  async find(reader: SqlReader, by: 'login' | 'id', value: string): Promise<User | undefined> {
    const column = by === 'login' ? this.#users.name : this.#users.id
    const [user, second] = await this.#selectTwo(reader, equals('u', column, value))
    if (second !== undefined) throw new GatewayError('TARGET_FAILED', `several users have the same ${by}`)
    return user
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
    const text = textIn('u', this.#users.name)
    const folded = reader.dialect === 'postgres' ? sql`lower(${text} collate "C")` : sql`lower(${text})`
    return this.#selectTwo(reader, sql`${folded} = ${login.toLowerCase()}`)
  }

  async #selectTwo(reader: SqlReader, condition: Sql): Promise<readonly User[]> {
    const rows = await reader.query(
      sql`select ${this.#rows.columns} from ${tableId(this.#users.table)} as u where ${condition} limit 2`,
    )
    return rows.map((row) => this.#rows.toUser(row))
  }

  async isNamed(tx: SqlTransaction, group: NamedGroup): Promise<boolean | undefined> {
    return this.#memberships?.isNamed(tx, group)
  }

  async insert(tx: SqlTransaction, user: User, attributes: readonly string[]): Promise<void> {
    const values = this.#columnValues(user, attributes)
    const id = await insertEntry(tx, this.#users, { named: user.userID, values, returning: this.#users.id })
    const made = { ...user, id }
    for (const [name, values] of user.attributes) {
      const list = this.#values.get(name.toLowerCase())
      if (list !== undefined) await writeValues(tx, list, id, [], values)
    }
    // A deleted user of the same login may have left memberships behind.
    await this.#memberships?.leaveAll(tx, made)
    await this.#memberships?.touch(tx, user.groups)
    await this.#memberships?.join(tx, made, user.groups)
  }

  /** Empty values are written as well, so that no default replaces them, except in required columns. */
  #columnValues(user: User, attributes: readonly string[]): ColumnValues {
    const written = new Map<Column, Sql>()
    for (const name of attributes) {
      const column = this.#columns.get(name.toLowerCase())
      const value = user.attributes.first(name)
      if (column === undefined || (value === undefined && column.required)) continue
      written.set(column, value === undefined ? sql`null` : bound(column, value))
    }
    return [...written]
  }

  async update(tx: SqlTransaction, user: User, { attributes, join, leave, newUserID }: UserUpdate): Promise<void> {
    const { name: login } = this.#users
    const sets = newUserID === undefined ? [] : [equalTo(login, acceptValue('userID', login, newUserID))]
    for (const [name, values] of attributes) {
      const column = this.#columns.get(name.toLowerCase())
      const list = this.#values.get(name.toLowerCase())
      if (list !== undefined) await writeValues(tx, list, keyOf(user), user.attributes.values(name), values)
      if (column !== undefined) sets.push(setTo(column, name, values[0]))
    }
    await this.#memberships?.touch(tx, [...leave, ...join])
    await this.#memberships?.leave(tx, user, leave)
    await this.#memberships?.join(tx, user, join)
    await updateEntry(tx, this.#users, keyOf(user), sets)
  }

  async delete(tx: SqlTransaction, user: User): Promise<void> {
    for (const { table, user: column } of this.#users.values.values()) {
      await tx.run(sql`delete from ${tableId(table)} where ${equalTo(column, keyOf(user))}`)
    }
    await this.#memberships?.leaveAll(tx, user)
    await deleteEntry(tx, this.#users, keyOf(user))
  }

  async setPassword(tx: SqlTransaction, user: User, { hash }: { readonly hash: string }): Promise<void> {
    const { password: column } = this.#users
    if (column === undefined) throw new GatewayError('NOT_SUPPORTED', 'there is no column for passwords')
    if (column.maxLength !== undefined && column.maxLength < hash.length) {
      throw new GatewayError(
        'TARGET_FAILED',
        `column "${column.name}" is too short for a hash of ${hash.length} characters`,
      )
    }
    await updateEntry(tx, this.#users, keyOf(user), [equalTo(column, hash)])
  }
}

/** A column that needs a value gets its default instead of none. Throws BAD_REQUEST if it has none. */
export function setTo(column: Column, attribute: string, value: string | undefined): Sql {
  const isMissing = value === undefined && column.required
  if (isMissing && column.defaultText === undefined) refuse(attribute, 'must have a value')
  return equalTo(column, isMissing ? column.defaultText : value)
}

const keyOf = (user: User): string => user.id ?? user.userID

/**
 * Changes the rows of one attribute of one user from the stored values to the wanted ones. Rows stay if possible, with
 * their other columns; if a number defines the order and it can't be kept, all are written again.
 */
async function writeValues(
  tx: SqlTransaction,
  values: ValuesTable<Column>,
  user: string,
  present: readonly string[],
  wanted: readonly string[],
): Promise<void> {
  const { fixed } = values
  const ofUser = allOf([
    equalTo(values.user, user),
    ...(fixed === undefined ? [] : [equalTo(fixed.column, fixed.value)]),
  ])
  const kept = present.filter((value) => wanted.includes(value))
  const inOrder = values.position === undefined || kept.every((value, i) => value === wanted[i])
  if (!inOrder) {
    await tx.run(sql`delete from ${tableId(values.table)} where ${ofUser}`)
    return insertValues(tx, values, user, wanted, 0)
  }
  for (const value of present) {
    if (wanted.includes(value)) continue
    const isValue = equalsExactly(values.value, value)
    await tx.run(sql`delete from ${tableId(values.table)} where ${ofUser} and ${isValue}`)
  }
  const added = wanted.filter((value) => !kept.includes(value))
  if (added.length > 0) await insertValues(tx, values, user, added, await nextPosition(tx, values, ofUser))
}

/** Rows per statement. */
const batch = 200

async function insertValues(
  tx: SqlTransaction,
  { table, user: userColumn, value: valueColumn, position, fixed }: ValuesTable<Column>,
  user: string,
  values: readonly string[],
  first: number,
): Promise<void> {
  const rows = values.map((value, i) => {
    const cells = [
      [userColumn, user],
      [valueColumn, value],
      ...(position === undefined ? [] : [[position, String(first + i)] as const]),
      ...(fixed === undefined ? [] : [[fixed.column, fixed.value] as const]),
    ] as const
    return sql`(${joinSql(cells.map(([column, text]) => bound(column, text)))})`
  })
  const columns = [userColumn, valueColumn, position, fixed?.column].filter((column) => column !== undefined)
  const into = sql`${tableId(table)} (${joinSql(columns.map(({ name }) => identifier(name)))})`
  for (let done = 0; done < rows.length; done += batch) {
    await tx.run(sql`insert into ${into} values ${joinSql(rows.slice(done, done + batch))}`)
  }
}

async function nextPosition(
  tx: SqlTransaction,
  { table, position }: ValuesTable<Column>,
  ofUser: Sql,
): Promise<number> {
  if (position === undefined) return 0
  const last = sql`max(${identifier(position.name)})`
  const [row] = await tx.query(sql`select cast(${last} as text) as last from ${tableId(table)} where ${ofUser}`)
  const number = row?.['last']
  return typeof number === 'string' ? Number(number) + 1 : 0
}

/** Who is in which group. */
class Memberships {
  readonly #groups: GroupTables<Column>
  readonly #byLogin: boolean

  constructor(groups: GroupTables<Column>, { users }: Layout) {
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
    const sets = [...nextVersion(own.version), ...nextTime(own.times)]
    if (sets.length === 0) return
    for (const name of [...new Set(names)].sort()) {
      await tx.run(sql`update ${tableId(own.table)} as g set ${joinSql(sets)} where ${equals('g', own.name, name)}`)
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
          [members.user, bound(members.user, this.#userRef(user))],
          [members.group, bound(members.group, group)],
        ]),
      )
    }
  }

  async leave(tx: SqlTransaction, user: User, names: readonly string[]): Promise<void> {
    const { members, own } = this.#groups
    for (const name of names.toSorted()) {
      const isGroup =
        own === undefined
          ? equalTo(members.group, name)
          : sql`${identifier(members.group.name)} in (select ${identifier('g', own.ref.name)} from ${tableId(own.table)} as g where ${equals('g', own.name, name)})`
      await tx.run(sql`delete from ${tableId(members.table)} where ${this.#ofUser(user)} and ${isGroup}`)
    }
  }

  async leaveAll(tx: SqlTransaction, user: User): Promise<void> {
    const { members, own } = this.#groups
    const sets = nextVersion(own?.version)
    if (own !== undefined && sets.length > 0) {
      const joined = sql`select ${identifier(members.group.name)} from ${tableId(members.table)} where ${this.#ofUser(user)}`
      await tx.run(
        sql`update ${tableId(own.table)} as g set ${joinSql(sets)} where ${identifier('g', own.ref.name)} in (${joined})`,
      )
    }
    await tx.run(sql`delete from ${tableId(this.#groups.members.table)} where ${this.#ofUser(user)}`)
  }

  async isNamed(tx: SqlTransaction, group: NamedGroup): Promise<boolean | undefined> {
    const { own } = this.#groups
    if (own === undefined || own.id === own.name) return undefined
    const rows = await tx.query(
      sql`select ${textIn('g', own.name)} as name from ${tableId(own.table)} as g where ${equals('g', own.id, group.id)}${shared(tx)}`,
    )
    const name = rows[0]?.['name']
    return typeof name === 'string' && decode(own.name, name) === group.name
  }

  /** The value by which memberships refer to the group. The group can't be deleted until the transaction ends. */
  async #refOf(tx: SqlTransaction, own: GroupTable<Column>, name: string): Promise<string> {
    const rows = await tx.query(
      sql`select ${textIn('g', own.ref)} as ref from ${tableId(own.table)} as g where ${equals('g', own.name, name)}${shared(tx)}`,
    )
    const ref = rows[0]?.['ref']
    if (typeof ref === 'string') return decode(own.ref, ref)
    if (!own.createMissing) refuse('groups', `names a group that is not there: "${name.slice(0, 100)}"`)
    return insertEntry(tx, own, { named: acceptValue('groups', own.name, name), values: [], returning: own.ref })
  }

  #ofUser(user: User): Sql {
    return equalTo(this.#groups.members.user, this.#userRef(user))
  }

  #userRef = (user: User): string => (this.#byLogin ? user.userID : (user.id ?? user.userID))
}

/** Locks the read rows against deletion; SQLite has one writer at a time anyway. */
const shared = (tx: SqlTransaction): Sql => (tx.dialect === 'postgres' ? sql` for key share` : sql``)
