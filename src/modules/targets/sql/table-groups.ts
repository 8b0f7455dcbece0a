import sql, { join, type Sql } from 'sql-template-tag'
import type { Attributes } from '#identity/attributes.ts'
import { groupChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type GroupStore, reconcileGroups, type StoredGroup } from '#modules/shared/targets/group-reconciler.ts'
import type { Exclusively } from '#modules/shared/targets/user-reconciler.ts'
import type { SqlDatabase, SqlTransaction } from '#protocols/sql/sql-database.ts'
import { identifier } from '#protocols/sql/sql-database.ts'
import type { GroupTarget, Target } from '#sdk/target/target.ts'
import { acceptValue, acceptValues, bound, type Column, refuse } from './column.ts'
import { type GroupRows, nextTime, nextVersion } from './entry-rows.ts'
import type { GroupLayout } from './layout.ts'
import { insertGroup } from './table-users.ts'
import { tableId } from './tables-config.ts'

type OwnGroups = NonNullable<GroupLayout['own']>

/** The tables of groups, after they were read. */
export interface GroupTables {
  readonly rows: GroupRows
  readonly groups: GroupLayout
  readonly own: OwnGroups
}

/** Groups in their own table. Each change is one transaction, and is reported after the commit. */
export function tableGroups(database: SqlDatabase, open: () => Promise<GroupTables>): Omit<GroupTarget, keyof Target> {
  const inTransaction: Exclusively<GroupStore<StoredGroup>> = async (_, work) => {
    const tables = await open()
    return database.transaction((tx) => work(storeIn(tx, tables)))
  }
  return {
    ...reconcileGroups(inTransaction),
    findGroup: async (name) => (await open()).rows.find(database, 'name', name),
  }
}

function storeIn(tx: SqlTransaction, { rows, own, groups }: GroupTables): GroupStore<StoredGroup> {
  return {
    requiresNew: true,
    rereadsConflicts: true,
    touches: true,
    read: async (name) => {
      const group = await rows.find(tx, 'name', name, true)
      return group && { group }
    },
    accept: (attribute, values) => acceptColumn(own, attribute, values).values,
    isSame: ({ group }, name, attributes) =>
      groupChanges(group, name, attributes).length === 0 && hasNothingElse(own, group, attributes),
    create: async (name, attributes, { changes }) => {
      await insertGroup(tx, own, acceptValue('name', own.name, name), columnValues(tx, own, attributes))
      return changes
    },
    write: async ({ group }, { newName, attributes, changes }) => {
      const sets = [...attributes].map(([key, [value]]) => setTo(tx, acceptColumn(own, key, []).column, key, value))
      if (newName !== group.name) {
        if (own.ref === own.name) throw new GatewayError('NOT_SUPPORTED', 'memberships refer to the name of the group')
        sets.push(setTo(tx, own.name, 'name', acceptValue('name', own.name, newName)))
      }
      sets.push(...nextVersion(own.version, tx.dialect), ...nextTime(own.times, tx.dialect))
      if (sets.length > 0) {
        await tx.run(sql`update ${tableId(own.table)} set ${join(sets)} where ${isGroup(tx, own, group)}`)
      }
      return changes
    },
    delete: async ({ group: found }, { changes }) => {
      const { table, group } = groups.members
      const ref = own.ref === own.id ? found.id : found.name
      await tx.run(
        sql`delete from ${tableId(table)} where ${identifier(group.name)} = ${bound(group, ref, tx.dialect)}`,
      )
      await tx.run(sql`delete from ${tableId(own.table)} where ${isGroup(tx, own, found)}`)
      return changes
    },
  }
}

/** Whether a group has only the requested attributes, and those that the database gives every new group. */
const hasNothingElse = (own: OwnGroups, { attributes }: Group, wanted: Attributes): boolean =>
  own.columns.every(
    ({ attribute, column }) => wanted.has(attribute) || column.hasDefault || !attributes?.has(attribute),
  )

const isGroup = (tx: SqlTransaction, own: OwnGroups, { id }: Group): Sql =>
  sql`${identifier(own.id.name)} = ${bound(own.id, id, tx.dialect)}`

function setTo(tx: SqlTransaction, column: Column, attribute: string, value: string | undefined): Sql {
  if (value === undefined && column.required) refuse(attribute, 'must have a value')
  return sql`${identifier(column.name)} = ${value === undefined ? sql`null` : bound(column, value, tx.dialect)}`
}

const columnValues = (tx: SqlTransaction, own: OwnGroups, attributes: Attributes): (readonly [Column, Sql])[] =>
  Array.from(attributes, ([name, [value]]) => {
    const { column } = acceptColumn(own, name, [])
    return [column, value === undefined ? sql`null` : bound(column, value, tx.dialect)] as const
  })

function acceptColumn(own: OwnGroups, name: string, values: readonly string[]) {
  const found = own.columns.find(({ attribute }) => attribute.toLowerCase() === name.toLowerCase())
  if (found === undefined) return refuse(name, 'cannot be stored: groups have no column for it')
  const kept = acceptValues(name, found.column, values)
  return kept.length > 1 ? refuse(name, 'can have one value only') : { column: found.column, values: kept }
}
