import sql, { type Sql } from 'sql-template-tag'
import { type GroupStore, reconcileGroups, type StoredGroup } from '#adapters/targets/shared/group-reconciler.ts'
import type { Exclusively } from '#adapters/targets/shared/user-reconciler.ts'
import type { Attributes } from '#identity/attributes.ts'
import { groupChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlDatabase, SqlTransaction } from '#protocols/sql/sql-database.ts'
import type { GroupTarget, Target } from '#sdk/target/target.ts'
import { acceptValue, acceptValues, bound, type Column, equalTo, refuse } from './column.ts'
import { type ColumnValues, deleteEntry, type GroupRows, insertEntry, updateEntry } from './entry-rows.ts'
import { setTo } from './table-users.ts'
import { type GroupTable, type GroupTables, tableId } from './tables.ts'

/** The tables of groups, after they were read. */
export interface OpenGroups {
  readonly rows: GroupRows
  readonly members: GroupTables<Column>['members']
  readonly own: GroupTable<Column>
}

/** Groups in their own table. Each change is one transaction, and is reported after the commit. */
export function tableGroups(database: SqlDatabase, open: () => Promise<OpenGroups>): Omit<GroupTarget, keyof Target> {
  const inTransaction: Exclusively<GroupStore<StoredGroup>> = async (_, work) => {
    const tables = await open()
    return database.transaction((tx) => work(storeIn(tx, tables)))
  }
  return {
    ...reconcileGroups(inTransaction),
    findGroup: async (name) => (await open()).rows.find(database, 'name', name),
  }
}

function storeIn(tx: SqlTransaction, { rows, own, members }: OpenGroups): GroupStore<StoredGroup> {
  return {
    requiresNew: true,
    rereadsConflicts: true,
    touches: true,
    read: async (name) => {
      const group = await rows.find(tx, 'name', name, true)
      return group && { group }
    },
    accept: (attribute, values) => acceptAttribute(own, attribute, values),
    isSame: ({ group }, name, attributes) =>
      groupChanges(group, name, attributes).length === 0 && hasNothingElse(own, group, attributes),
    create: async (name, attributes, { changes }) => {
      const named = acceptValue('name', own.name, name)
      await insertEntry(tx, own, { named, values: columnValues(own, attributes), returning: own.ref })
      return changes
    },
    write: async ({ group }, { newName, attributes, changes }) => {
      const sets = [...attributes].map(([key, [value]]) => setTo(columnFor(own, key), key, value))
      if (newName !== group.name) {
        if (own.ref === own.name) throw new GatewayError('NOT_SUPPORTED', 'memberships refer to the name of the group')
        sets.push(equalTo(own.name, acceptValue('name', own.name, newName)))
      }
      await updateEntry(tx, own, group.id, sets)
      return changes
    },
    delete: async ({ group }, { changes }) => {
      const ref = own.ref === own.id ? group.id : group.name
      await tx.run(sql`delete from ${tableId(members.table)} where ${equalTo(members.group, ref)}`)
      await deleteEntry(tx, own, group.id)
      return changes
    },
  }
}

/** Whether a group has only the requested attributes, and those that the database gives every new group. */
const hasNothingElse = (own: GroupTable<Column>, { attributes }: Group, wanted: Attributes): boolean =>
  Array.from(own.columns).every(
    ([attribute, column]) => wanted.has(attribute) || column.hasDefault || !attributes?.has(attribute),
  )

const columnValues = (own: GroupTable<Column>, attributes: Attributes): ColumnValues =>
  Array.from(attributes, ([name, [value]]): [Column, Sql] => {
    const column = columnFor(own, name)
    return [column, value === undefined ? sql`null` : bound(column, value)]
  })

function columnFor(own: GroupTable<Column>, name: string): Column {
  const [, column] = Array.from(own.columns).find(([key]) => key.toLowerCase() === name.toLowerCase()) ?? []
  return column ?? refuse(name, 'cannot be stored: groups have no column for it')
}

function acceptAttribute(own: GroupTable<Column>, name: string, values: readonly string[]): readonly string[] {
  const kept = acceptValues(name, columnFor(own, name), values)
  return kept.length > 1 ? refuse(name, 'can have one value only') : kept
}
