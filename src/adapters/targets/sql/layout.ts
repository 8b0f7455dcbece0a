import sql from 'sql-template-tag'
import { suggestion } from '#kernel/suggest.ts'
import type { SqlReader, SqlRow } from '#protocols/sql/sql-database.ts'
import { type Column, type ColumnKind, canonical, constantText } from './column.ts'
import {
  type EntryTable,
  type EntryTimes,
  type GroupTables,
  showTable,
  type TableName,
  type Tables,
  type UserTable,
  type ValuesTable,
} from './tables.ts'

/** The configured tables with the columns that the database has. */
export type Layout = Tables<Column>

/** Throws an Error that names a missing or unusable table or column. */
export async function readLayout(reader: SqlReader, { users, groups }: Tables<string>): Promise<Layout> {
  const table = await TableReader.open(reader, users.table)
  const entry = entryTable(table, users)
  const password = users.password === undefined ? undefined : table.writable(users.password)
  const values = new Map<string, ValuesTable<Column>>()
  for (const [attribute, config] of users.values) values.set(attribute, await valuesTable(reader, config))
  const isListed = users.columns.size + users.values.size > 0
  const columns = isListed ? entry.columns : allColumns(table, { ...entry, password })
  const user = { ...entry, columns, password, values }
  return { users: user, groups: groups && (await groupTables(reader, groups, table)) }
}

function entryTable(table: TableReader, config: EntryTable<string>): EntryTable<Column> {
  const name = table.column(config.name)
  const id = table.column(config.id)
  if (id !== name) checkKey(table, id)
  return {
    table: table.name,
    name,
    id,
    version: versionColumn(table, config.version),
    times: timeColumns(table, config.times),
    columns: new Map(Array.from(config.columns, ([attribute, column]) => [attribute, table.writable(column)])),
  }
}

/** Every column without another purpose. As in OpenUnison, the login is also an attribute named after its column. */
function allColumns(
  table: TableReader,
  { name, id, version, times, password }: Omit<UserTable<Column>, 'values'>,
): ReadonlyMap<string, Column> {
  const taken = new Set([id, version, password, times.created, times.modified])
  const isAttribute = (column: Column) => !taken.has(column) && column.kind !== 'binary' && !column.generated
  const columns = table.all.filter((column) => column === name || isAttribute(column))
  return new Map(columns.map((column) => [column.name, column]))
}

async function valuesTable(reader: SqlReader, config: ValuesTable<string>): Promise<ValuesTable<Column>> {
  const table = await TableReader.open(reader, config.table)
  const position = config.position === undefined ? undefined : table.writable(config.position)
  if (position !== undefined && position.kind !== 'integer') {
    throw new Error(
      `column "${position.name}" of table "${table.shown}" cannot number values: it is of type ${position.type}`,
    )
  }
  const fixed = config.fixed && { column: table.writable(config.fixed.column), value: config.fixed.value }
  if (fixed !== undefined && canonical(fixed.column, fixed.value) === undefined) {
    throw new Error(`column "${fixed.column.name}" of table "${table.shown}" cannot hold "${fixed.value}"`)
  }
  return { table: table.name, user: table.writable(config.user), value: table.writable(config.value), position, fixed }
}

async function groupTables(
  reader: SqlReader,
  { members, userRef, own }: GroupTables<string>,
  users: TableReader,
): Promise<GroupTables<Column>> {
  const link = await TableReader.open(reader, members.table)
  const links = { table: link.name, user: link.writable(members.user), group: link.writable(members.group) }
  if (own === undefined) return { members: links, userRef: users.column(userRef), own }
  const table = await TableReader.open(reader, own.table)
  table.writable(own.name)
  return {
    members: links,
    userRef: users.column(userRef),
    own: { ...entryTable(table, own), ref: table.column(own.ref), createMissing: own.createMissing },
  }
}

/** Numbers increase by one; texts are replaced by a new id. */
function versionColumn(table: TableReader, name: string | undefined): Column | undefined {
  if (name === undefined) return undefined
  const column = table.writable(name)
  if (column.kind === 'integer' || column.kind === 'uuid') return column
  if (column.kind === 'text' && (column.maxLength ?? 36) >= 36) return column
  throw new Error(
    `column "${name}" of table "${table.shown}" cannot hold versions: it is of type ${column.type}, not a number or a text of 36 characters`,
  )
}

function timeColumns(table: TableReader, { created, modified }: EntryTimes<string>): EntryTimes<Column> {
  const timeColumn = (name: string | undefined): Column | undefined => {
    const column = name === undefined ? undefined : table.column(name)
    if (column === undefined || column.kind === 'timestamp') return column
    throw new Error(
      `column "${name}" of table "${table.shown}" cannot hold times: it is of type ${column.type}, not a timestamp`,
    )
  }
  return { created: timeColumn(created), modified: timeColumn(modified) }
}

/** New rows need a key: from the database, or one of our ids. */
function checkKey(table: TableReader, column: Column): void {
  if (column.hasDefault || column.generated || makesOwnKey(column)) return
  throw new Error(
    `column "${column.name}" of table "${table.shown}" has no default, and keys of type ${column.type} cannot be made here`,
  )
}

/** The target creates the key of a new row. */
export const makesOwnKey = (column: Column): boolean =>
  !column.hasDefault &&
  !column.generated &&
  (column.kind === 'uuid' || (column.kind === 'text' && (column.maxLength ?? 36) >= 36))

/**
 * PostgreSQL stores a name that was created without quotes in lower case, and OpenUnison names tables and columns without
 * quotes. So a name that it does not have as it is means that in lower case.
 */
class TableReader {
  readonly name: TableName
  readonly #columns: ReadonlyMap<string, Column>
  readonly #folds: boolean

  static async open(reader: SqlReader, table: TableName): Promise<TableReader> {
    const folds = reader.dialect === 'postgres'
    const lower = { schema: table.schema?.toLowerCase(), table: table.table.toLowerCase() }
    for (const name of folds ? [table, lower] : [table]) {
      const columns = await readColumns(reader, name)
      if (columns.size > 0) return new TableReader(name, columns, folds)
    }
    throw new Error(`there is no table "${showTable(table)}" that this account may see`)
  }

  constructor(name: TableName, columns: ReadonlyMap<string, Column>, folds: boolean) {
    this.name = name
    this.#columns = columns
    this.#folds = folds
  }

  get shown(): string {
    return showTable(this.name)
  }

  get all(): readonly Column[] {
    return [...this.#columns.values()]
  }

  column(name: string): Column {
    const column = this.#columns.get(name) ?? (this.#folds ? this.#columns.get(name.toLowerCase()) : undefined)
    if (column === undefined) {
      throw new Error(`table "${this.shown}" has no column "${name}"${suggestion(name, this.#columns.keys())}`)
    }
    if (column.kind === 'binary') {
      throw new Error(
        `column "${name}" of table "${this.shown}" is of type ${column.type}, which cannot be read as text`,
      )
    }
    return column
  }

  writable(name: string): Column {
    const column = this.column(name)
    if (column.generated) throw new Error(`column "${name}" of table "${this.shown}" is computed by the database`)
    return column
  }
}

/** The columns of a table or view, in order; empty if it does not exist. */
async function readColumns(reader: SqlReader, table: TableName): Promise<ReadonlyMap<string, Column>> {
  const columns =
    reader.dialect === 'postgres' ? await postgresColumns(reader, table) : await sqliteColumns(reader, table)
  return new Map(columns.map((column) => [column.name, column]))
}

const textIn = (row: SqlRow, name: string): string => String(row[name] ?? '')

async function postgresColumns(reader: SqlReader, { schema, table }: TableName): Promise<Column[]> {
  const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
  const name = schema === undefined ? quoted(table) : `${quoted(schema)}.${quoted(table)}`
  const rows = await reader.query(sql`
    select a.attname as name, format_type(b.oid, null) as type, b.typcategory as category,
      case when t.typtype = 'd' then t.typtypmod else a.atttypmod end as modifier,
      a.attnotnull as required, a.atthasdef or a.attidentity <> '' or t.typdefault is not null as has_default,
      a.attgenerated <> '' as generated, pg_get_expr(d.adbin, d.adrelid) as default_value
    from pg_attribute as a
    left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
    join pg_type as t on t.oid = a.atttypid
    join pg_type as b on b.oid = case when t.typtype = 'd' then t.typbasetype else t.oid end
    where a.attrelid = to_regclass(cast(${name} as text)) and a.attnum > 0 and not a.attisdropped
    order by a.attnum`)
  return rows.map((row) => {
    const type = textIn(row, 'type')
    const modifier = Number(textIn(row, 'modifier'))
    return {
      dialect: 'postgres',
      name: textIn(row, 'name'),
      type,
      ...withDefault(postgresType(type, modifier, textIn(row, 'category')), row),
      required: textIn(row, 'required') === 't',
      hasDefault: textIn(row, 'has_default') === 't',
      generated: textIn(row, 'generated') === 't',
    }
  })
}

function withDefault(fields: TypeFields, row: SqlRow): TypeFields & Pick<Column, 'defaultText'> {
  const defaultText = fields.kind === 'text' ? constantText(textIn(row, 'default_value')) : undefined
  return defaultText === undefined ? fields : { ...fields, defaultText }
}

type TypeFields = Pick<Column, 'kind' | 'maxLength' | 'bits' | 'precision' | 'scale' | 'zoned'>

/** By the database's name. */
const postgresTypes: Readonly<Record<string, TypeFields>> = {
  text: { kind: 'text' },
  'character varying': { kind: 'text' },
  character: { kind: 'padded' },
  smallint: { kind: 'integer', bits: 16 },
  integer: { kind: 'integer', bits: 32 },
  bigint: { kind: 'integer', bits: 64 },
  numeric: { kind: 'decimal' },
  real: { kind: 'float', precision: 6 },
  'double precision': { kind: 'float', precision: 15 },
  boolean: { kind: 'boolean' },
  date: { kind: 'date' },
  uuid: { kind: 'uuid' },
  'timestamp with time zone': { kind: 'timestamp', zoned: true },
  'timestamp without time zone': { kind: 'timestamp' },
  bytea: { kind: 'binary' },
}

/** A type modifier is four more than the number in parentheses. */
function postgresType(type: string, modifier: number, category: string): TypeFields {
  const fields = Object.hasOwn(postgresTypes, type) ? postgresTypes[type] : undefined
  if (fields === undefined) return { kind: category === 'A' ? 'binary' : 'other' }
  if (modifier < 4) return fields
  if (fields.kind === 'text' || fields.kind === 'padded') return { ...fields, maxLength: modifier - 4 }
  if (fields.kind !== 'decimal') return fields
  return { ...fields, precision: ((modifier - 4) >> 16) & 0xffff, scale: (modifier - 4) & 0x7ff }
}

async function sqliteColumns(reader: SqlReader, { schema, table }: TableName): Promise<Column[]> {
  const rows = await reader.query(
    sql`select name, type, "notnull" as required, dflt_value is not null as has_default, dflt_value as default_value, pk, hidden from pragma_table_xinfo(${table}, ${schema ?? 'main'})`,
  )
  const keys = rows.filter((row) => textIn(row, 'pk') !== '0').length
  return rows.map((row) => {
    const type = textIn(row, 'type').toLowerCase()
    const isRowId = type === 'integer' && keys === 1 && textIn(row, 'pk') === '1'
    return {
      dialect: 'sqlite',
      name: textIn(row, 'name'),
      type,
      ...withDefault(sqliteType(type), row),
      required: textIn(row, 'required') !== '0' || isRowId,
      hasDefault: textIn(row, 'has_default') !== '0' || isRowId,
      generated: textIn(row, 'hidden') !== '0',
    }
  })
}

/** The first that matches, as in SQLite's own rules of affinity (https://www.sqlite.org/datatype3.html, 3.1). */
const sqliteKinds: readonly (readonly [RegExp, ColumnKind])[] = [
  [/bool/, 'boolean'],
  [/int/, 'integer'],
  [/char|clob|text/, 'text'],
  [/blob/, 'binary'],
  [/real|floa|doub/, 'float'],
  [/datetime|timestamp/, 'timestamp'],
  [/^date$/, 'date'],
  [/numeric|decimal/, 'float'],
  [/^$/, 'text'],
]

function sqliteType(type: string): TypeFields {
  const kind = sqliteKinds.find(([pattern]) => pattern.test(type))?.[1] ?? 'affine'
  if (kind !== 'text') return { kind }
  const length = /\((\d{1,9})\)/.exec(type)?.[1]
  return length === undefined ? { kind } : { kind, maxLength: Number(length) }
}
