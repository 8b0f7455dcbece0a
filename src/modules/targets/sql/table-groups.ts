import { sql } from 'kysely'
import { Attributes } from '#identity/attributes.ts'
import { groupChanges, newGroupChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import { requireVersion } from '#modules/shared/targets/user-reconciler.ts'
import type { SqlDatabase, SqlTransaction } from '#protocols/sql/sql-database.ts'
import type { GroupTarget, Target, TargetChange, TargetRequest } from '#sdk/target.ts'
import { held, heldValues, refuse } from './bad-value.ts'
import type { Column } from './column.ts'
import type { GroupRows } from './group-rows.ts'
import type { GroupLayout } from './layout.ts'
import { insertGroup } from './memberships.ts'
import { tableId } from './table-name.ts'
import { bound, type Sql } from './table-sql.ts'
import { nextTime } from './table-times.ts'
import { nextVersion } from './table-version.ts'

type OwnGroups = NonNullable<GroupLayout['own']>

/** What the tables say once they were read. */
export interface GroupTables {
  readonly rows: GroupRows
  readonly groups: GroupLayout
  readonly own: OwnGroups
}

/** Groups in a table of their own. Each change is one transaction, told once it is durable. */
export function tableGroups(database: SqlDatabase, open: () => Promise<GroupTables>): Omit<GroupTarget, keyof Target> {
  return {
    findGroup: async (name) => (await open()).rows.find(database, 'name', name),

    async createGroup(name, attributes, request, options) {
      const { rows, own } = await open()
      const wanted = heldAttributes(own, Attributes.from(attributes))
      const isThere = (found: Group): boolean =>
        options?.mustBeNew !== true &&
        groupChanges(found, name, wanted).length === 0 &&
        hasNothingElse(own, found, wanted)
      try {
        const made = await database.transaction(async (tx) => {
          const found = await rows.find(tx, 'name', name, true)
          if (found !== undefined) return isThere(found) ? false : taken(name)
          await insertGroup(tx, own, held('name', own.name, name), columnValues(tx, own, wanted))
          return true
        })
        if (!made) return
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
        const found = await rows.find(database, 'name', name)
        if (found === undefined || !isThere(found)) throw error
        return
      }
      report(newGroupChanges(name, wanted), request)
    },

    async updateGroup(name, { newName = name, attributes = {}, expectedVersion }, request) {
      const { rows, own } = await open()
      const wanted = new Map(
        Object.entries(attributes).map(([key, values]) => [key, heldColumn(own, key, values).values]),
      )
      const changes = await database.transaction(async (tx) => {
        const found = await rows.find(tx, 'name', name, true)
        if (found === undefined) throw new GatewayError('NOT_FOUND', `no group "${name}"`)
        requireVersion(found, expectedVersion)
        const changes = groupChanges(found, newName, wanted)
        if (changes.length === 0 && expectedVersion === undefined) return []
        const sets = [...wanted].map(([key, [value]]) => setTo(tx, heldColumn(own, key, []).column, key, value))
        if (newName !== found.name) {
          const other = await rows.find(tx, 'name', newName)
          if (other !== undefined && other.id !== found.id) taken(newName)
          if (own.ref === own.name)
            throw new GatewayError('NOT_SUPPORTED', 'memberships refer to the name of the group')
          sets.push(setTo(tx, own.name, 'name', held('name', own.name, newName)))
        }
        sets.push(...nextVersion(own.version, tx.dialect), ...nextTime(own.times, tx.dialect))
        if (sets.length > 0) {
          await tx.run(sql`update ${tableId(own.table)} set ${sql.join(sets)} where ${isGroup(tx, own, found)}`)
        }
        return changes
      })
      report(changes, request)
    },

    async deleteGroup(name, request, options) {
      const { rows, own, groups } = await open()
      const deleted = await database.transaction(async (tx) => {
        const found = await rows.find(tx, 'name', name, true)
        if (found === undefined) return false
        requireVersion(found, options?.expectedVersion)
        const { table, group } = groups.members
        const ref = own.ref === own.id ? found.id : found.name
        await tx.run(sql`delete from ${tableId(table)} where ${sql.id(group.name)} = ${bound(group, ref, tx.dialect)}`)
        await tx.run(sql`delete from ${tableId(own.table)} where ${isGroup(tx, own, found)}`)
        return true
      })
      if (deleted) report([{ subject: 'entry', action: 'delete', attribute: 'name', value: name }], request)
    },
  }
}

/** What the database gives every new group is nothing that somebody else wrote. */
const hasNothingElse = (own: OwnGroups, { attributes }: Group, wanted: Attributes): boolean =>
  own.columns.every(
    ({ attribute, column }) => wanted.has(attribute) || column.hasDefault || !attributes?.has(attribute),
  )

const isGroup = (tx: SqlTransaction, own: OwnGroups, { id }: Group): Sql =>
  sql`${sql.id(own.id.name)} = ${bound(own.id, id, tx.dialect)}`

function setTo(tx: SqlTransaction, column: Column, attribute: string, value: string | undefined): Sql {
  if (value === undefined && column.required) refuse(attribute, 'must have a value')
  return sql`${sql.id(column.name)} = ${value === undefined ? sql`null` : bound(column, value, tx.dialect)}`
}

const columnValues = (tx: SqlTransaction, own: OwnGroups, attributes: Attributes): (readonly [Column, Sql])[] =>
  Array.from(attributes, ([name, [value]]) => {
    const { column } = heldColumn(own, name, [])
    return [column, value === undefined ? sql`null` : bound(column, value, tx.dialect)] as const
  })

function heldAttributes(own: OwnGroups, attributes: Attributes): Attributes {
  const kept = new Attributes()
  for (const [name, values] of attributes) kept.set(name, heldColumn(own, name, values).values)
  return kept
}

function heldColumn(own: OwnGroups, name: string, values: readonly string[]) {
  const found = own.columns.find(({ attribute }) => attribute.toLowerCase() === name.toLowerCase())
  if (found === undefined) return refuse(name, 'cannot be stored: groups have no column for it')
  const kept = heldValues(name, found.column, values)
  return kept.length > 1 ? refuse(name, 'can have one value only') : { column: found.column, values: kept }
}

function taken(name: string): never {
  throw new GatewayError('CONFLICT', `there is a group "${name}" already`, { keyword: 'uniqueness' })
}

const report = (changes: readonly TargetChange[], request: TargetRequest): void => {
  for (const change of changes) request.audit(change)
}
