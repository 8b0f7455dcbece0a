import type { Sql } from 'sql-template-tag'
import { identifier } from '#protocols/sql/sql-database.ts'

/** A table or view as the configuration names it. */
export interface TableName {
  readonly schema: string | undefined
  readonly table: string
}

/** A table with some of its columns: `emails(person_id, address, kind=work)`. */
interface TableColumns {
  readonly table: TableName
  readonly columns: readonly string[]
  /** Only rows with this value count. */
  readonly fixed: FixedColumn<string> | undefined
}

/** A column that has the same value in all rows of an attribute. */
export interface FixedColumn<C> {
  readonly column: C
  readonly value: string
}

/** Names are always quoted, so nearly any text is valid, except for the characters of our own syntax. */
const notInNames = /["'`;().,\p{Cc}]/u
const maxLength = 128

/** Throws an Error that describes the problem. */
export function parseColumnName(text: string): string {
  const name = text.trim()
  if (name === '' || name.length > maxLength || notInNames.test(name))
    throw new Error(`"${text}" is not a column's name`)
  return name
}

/** `table` or `schema.table`. Throws an Error that describes the problem. */
export function parseTableName(text: string): TableName {
  const parts = text.split('.').map((part) => part.trim())
  if (parts.length > 2 || parts.some((part) => part === '' || part.length > maxLength || notInNames.test(part))) {
    throw new Error(`"${text}" is not a table's name`)
  }
  const [first = '', second] = parts
  return second === undefined ? { schema: undefined, table: first } : { schema: first, table: second }
}

/** Throws an Error that describes the problem. */
export function parseTableColumns(text: string): TableColumns {
  const parts = /^([^()]+)\(([^()]+)\)\s*$/.exec(text)
  if (parts === null)
    throw new Error(`must be a table and its columns, such as emails(person_id, address), not "${text}"`)
  const names = (parts[2] ?? '').split(',')
  const [, column, value] = /^([^=]+)=(.+)$/.exec(names.at(-1) ?? '') ?? []
  const fixed =
    column === undefined || value === undefined ? undefined : { column: parseColumnName(column), value: value.trim() }
  const columns = (fixed === undefined ? names : names.slice(0, -1)).map(parseColumnName)
  return { table: parseTableName(parts[1] ?? ''), columns, fixed }
}

export const showTable = ({ schema, table }: TableName): string => (schema === undefined ? table : `${schema}.${table}`)

export const tableId = ({ schema, table }: TableName): Sql =>
  schema === undefined ? identifier(table) : identifier(schema, table)

/** An existing schema, with columns as the configuration names them or as the database describes them. */
export interface Tables<C> {
  readonly users: UserTable<C>
  readonly groups: GroupTables<C> | undefined
}

/** The table of users or of groups. */
export interface EntryTable<C> {
  readonly table: TableName
  /** The login, or the group's name. */
  readonly name: C
  /** The key that other tables refer to; the name if there is no other. */
  readonly id: C
  readonly version: C | undefined
  readonly times: EntryTimes<C>
  /** By attribute. */
  readonly columns: ReadonlyMap<string, C>
}

export interface EntryTimes<C> {
  readonly created: C | undefined
  readonly modified: C | undefined
}

export interface UserTable<C> extends EntryTable<C> {
  readonly password: C | undefined
  /** Tables with a row for each value, by attribute. */
  readonly values: ReadonlyMap<string, ValuesTable<C>>
}

export interface ValuesTable<C> {
  readonly table: TableName
  /** Refers to the user. */
  readonly user: C
  readonly value: C
  /** Numbers the values of a user. */
  readonly position: C | undefined
  readonly fixed: FixedColumn<C> | undefined
}

export interface GroupTables<C> {
  /** The memberships. */
  readonly members: { readonly table: TableName; readonly user: C; readonly group: C }
  /** The column of the user table that `members.user` refers to. */
  readonly userRef: C
  /** The table of groups; if absent, a group exists while it has members, and `members.group` is its name. */
  readonly own: GroupTable<C> | undefined
}

export interface GroupTable<C> extends EntryTable<C> {
  /** The column that `members.group` refers to. */
  readonly ref: C
  /** Joining a group that does not exist creates it. */
  readonly createMissing: boolean
}
