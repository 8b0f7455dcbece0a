import { type RawBuilder, sql } from 'kysely'

/** A table or view as the configuration names it. */
export interface TableName {
  readonly schema: string | undefined
  readonly table: string
}

/** A table with columns of it: `emails(person_id, address)`. */
export interface TableColumns {
  readonly table: TableName
  readonly columns: readonly string[]
}

/** Names are quoted wherever they are used, so nearly anything can be one; these are what our own syntax is made of. */
const notInNames = /["'`;().,\p{Cc}]/u
const maxLength = 128

/** Throws an Error that says what is wrong. */
export function parseColumnName(text: string): string {
  const name = text.trim()
  if (name === '' || name.length > maxLength || notInNames.test(name))
    throw new Error(`"${text}" is not a column's name`)
  return name
}

/** `table` or `schema.table`. Throws an Error that says what is wrong. */
export function parseTableName(text: string): TableName {
  const parts = text.split('.').map((part) => part.trim())
  if (parts.length > 2 || parts.some((part) => part === '' || part.length > maxLength || notInNames.test(part))) {
    throw new Error(`"${text}" is not a table's name`)
  }
  const [first = '', second] = parts
  return second === undefined ? { schema: undefined, table: first } : { schema: first, table: second }
}

/** Throws an Error that says what is wrong. */
export function parseTableColumns(text: string): TableColumns {
  const parts = /^([^()]+)\(([^()]+)\)\s*$/.exec(text)
  if (parts === null)
    throw new Error(`must be a table and its columns, such as emails(person_id, address), not "${text}"`)
  return { table: parseTableName(parts[1] ?? ''), columns: (parts[2] ?? '').split(',').map(parseColumnName) }
}

export const showTable = ({ schema, table }: TableName): string => (schema === undefined ? table : `${schema}.${table}`)

export const tableId = ({ schema, table }: TableName): RawBuilder<unknown> =>
  schema === undefined ? sql.id(table) : sql.id(schema, table)
