import { sql } from 'kysely'
import type { User } from '#identity/user.ts'
import type { NamedGroup } from '#identity/user-directory.ts'
import { newId } from '#kernel/ids.ts'
import type { SqlTransaction } from '#protocols/sql/sql-database.ts'
import { held, refuse } from './bad-value.ts'
import { decode } from './column.ts'
import { type GroupLayout, type Layout, makesOwnKey } from './layout.ts'
import { tableId } from './table-name.ts'
import { bound, equals, insertInto, type Sql, textIn } from './table-sql.ts'
import { firstTimes, nextTime } from './table-times.ts'
import { firstVersion, nextVersion } from './table-version.ts'

type OwnGroups = NonNullable<GroupLayout['own']>

/** Who is in which group. */
export class Memberships {
  readonly #groups: GroupLayout
  readonly #byLogin: boolean

  constructor(groups: GroupLayout, { users }: Layout) {
    this.#groups = groups
    this.#byLogin = groups.userRef === users.name
  }

  /**
   * Gives these groups a new version and time, since their members are about to change. In one order for everybody, so that nobody
   * waits for another in a circle.
   */
  async touch(tx: SqlTransaction, names: readonly string[]): Promise<void> {
    const { own } = this.#groups
    if (own === undefined) return
    const sets = [...nextVersion(own.version, tx.dialect), ...nextTime(own.times, tx.dialect)]
    if (sets.length === 0) return
    for (const name of [...new Set(names)].sort()) {
      await tx.run(
        sql`update ${tableId(own.table)} as g set ${sql.join(sets)} where ${equals('g', own.name, name, tx.dialect)}`,
      )
    }
  }

  /** Throws BAD_REQUEST for a group that is not there and is not to be made. */
  async join(tx: SqlTransaction, user: User, names: readonly string[]): Promise<void> {
    const { members, own } = this.#groups
    // In one order for everybody, so that nobody waits for another in a circle.
    for (const name of names.toSorted()) {
      const group = own === undefined ? held('groups', members.group, name) : await this.#refOf(tx, own, name)
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
          ? sql`${sql.id(members.group.name)} = ${bound(members.group, name, tx.dialect)}`
          : sql`${sql.id(members.group.name)} in (select ${sql.id('g', own.ref.name)} from ${tableId(own.table)} as g where ${equals('g', own.name, name, tx.dialect)})`
      await tx.run(sql`delete from ${tableId(members.table)} where ${this.#ofUser(tx, user)} and ${isGroup}`)
    }
  }

  async leaveAll(tx: SqlTransaction, user: User): Promise<void> {
    const { members, own } = this.#groups
    const sets = nextVersion(own?.version, tx.dialect)
    if (own !== undefined && sets.length > 0) {
      const held = sql`select ${sql.id(members.group.name)} from ${tableId(members.table)} where ${this.#ofUser(tx, user)}`
      await tx.run(
        sql`update ${tableId(own.table)} as g set ${sql.join(sets)} where ${sql.id('g', own.ref.name)} in (${held})`,
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

  /** What memberships refer to the group by. Until the transaction ends, nobody deletes it. */
  async #refOf(tx: SqlTransaction, own: OwnGroups, name: string): Promise<string> {
    const rows = await tx.query(
      sql`select ${textIn('g', own.ref, tx.dialect)} as ref from ${tableId(own.table)} as g where ${equals('g', own.name, name, tx.dialect)}${shared(tx)}`,
    )
    const ref = rows[0]?.['ref']
    if (typeof ref === 'string') return decode(own.ref, ref)
    if (!own.createMissing) refuse('groups', `names a group that is not there: "${name.slice(0, 100)}"`)
    return insertGroup(tx, own, held('groups', own.name, name), [])
  }

  #ofUser(tx: SqlTransaction, user: User): Sql {
    const { user: column } = this.#groups.members
    return sql`${sql.id(column.name)} = ${bound(column, this.#userRef(user), tx.dialect)}`
  }

  #userRef = (user: User): string => (this.#byLogin ? user.userID : (user.id ?? user.userID))
}

/** Locks what was read against deletion; SQLite has one writer at a time anyway. */
const shared = (tx: SqlTransaction): Sql => (tx.dialect === 'postgres' ? sql` for key share` : sql``)

/** What memberships refer to the new group by. */
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
  const [row] = await tx.query(sql`${insert} returning cast(${sql.id(own.ref.name)} as text) as ref`)
  return decode(own.ref, String(row?.['ref'] ?? ''))
}
