import type { Sql } from 'sql-template-tag'
import { identifier } from '#protocols/sql/sql-database.ts'

/** A table or view as the configuration names it. */
export interface TableName {
  readonly schema: string | undefined
  readonly table: string
}

/** A table with some of its columns: `emails(person_id, address)`. */
interface TableColumns {
  readonly table: TableName
  readonly columns: readonly string[]
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
  return { table: parseTableName(parts[1] ?? ''), columns: (parts[2] ?? '').split(',').map(parseColumnName) }
}

export const showTable = ({ schema, table }: TableName): string => (schema === undefined ? table : `${schema}.${table}`)

export const tableId = ({ schema, table }: TableName): Sql =>
  schema === undefined ? identifier(table) : identifier(schema, table)

/** An existing schema, as the configuration describes it. */
export interface TablesConfig {
  readonly users: {
    readonly table: TableName
    readonly login: string
    /** The key that other tables refer to; the login itself if absent. */
    readonly id: string | undefined
    readonly version: string | undefined
    readonly times: TimesConfig
    readonly password: string | undefined
    /** Column by attribute; every column without another purpose if absent. */
    readonly columns: ReadonlyMap<string, string> | undefined
    /** Tables with a row for each value, by attribute. */
    readonly values: ReadonlyMap<string, ValuesConfig>
  }
  readonly groups: GroupsConfig | undefined
}

/** The columns of an entry's times. */
export interface TimesConfig {
  readonly created: string | undefined
  readonly modified: string | undefined
}

export interface ValuesConfig {
  readonly table: TableName
  /** Refers to the user. */
  readonly user: string
  readonly value: string
  /** Numbers the values of a user. */
  readonly position: string | undefined
}

export interface GroupsConfig {
  /** The memberships. */
  readonly members: { readonly table: TableName; readonly user: string; readonly group: string }
  readonly userBy: 'id' | 'login'
  /** The table of groups; if absent, a group exists while it has members, and `members.group` is its name. */
  readonly own:
    | {
        readonly table: TableName
        readonly name: string
        readonly id: string | undefined
        readonly version: string | undefined
        readonly times: TimesConfig
        readonly columns: ReadonlyMap<string, string>
        readonly groupBy: 'id' | 'name'
        /** Joining a group that does not exist creates it. */
        readonly createMissing: boolean
      }
    | undefined
}
