import sql from 'sql-template-tag'
import { suggestion } from '#kernel/suggest.ts'
import type { SqlReader, SqlRow } from '#protocols/sql/sql-database.ts'
import type { Column, ColumnKind } from './column.ts'
import {
  type GroupsConfig,
  showTable,
  type TableName,
  type TablesConfig,
  type TimesConfig,
  type ValuesConfig,
} from './tables-config.ts'

/** An existing schema, checked against the configuration. */
export interface Layout {
  readonly users: UserLayout
  readonly groups: GroupLayout | undefined
}

interface EntryLayout {
  readonly table: TableName
  /** The login, or the group's name. */
  readonly name: Column
  /** The key; the name if the table has no other. */
  readonly id: Column
  readonly version: Column | undefined
  readonly times: TimeColumns
  readonly columns: readonly AttributeColumn[]
}

/** Columns of the kind `timestamp`. */
export interface TimeColumns {
  readonly created: Column | undefined
  readonly modified: Column | undefined
}

interface AttributeColumn {
  readonly attribute: string
  readonly column: Column
}

export interface UserLayout extends EntryLayout {
  readonly password: Column | undefined
  readonly values: readonly ValuesLayout[]
}

export interface ValuesLayout {
  readonly attribute: string
  readonly table: TableName
  readonly user: Column
  readonly value: Column
  readonly position: Column | undefined
}

export interface GroupLayout {
  readonly members: { readonly table: TableName; readonly user: Column; readonly group: Column }
  /** The column of the user table that `members.user` refers to. */
  readonly userRef: Column
  readonly own: (EntryLayout & { readonly ref: Column; readonly createMissing: boolean }) | undefined
}

/** Throws an Error that names a missing or unusable table or column. */
export async function readLayout(reader: SqlReader, config: TablesConfig): Promise<Layout> {
  const { users, groups } = config
  const table = await TableReader.open(reader, users.table)
  const name = table.column(users.login)
  const id = users.id === undefined ? name : table.column(users.id)
  const version = versionColumn(table, users.version)
  const times = timeColumns(table, users.times)
  const password = users.password === undefined ? undefined : table.writable(users.password)
  // As in OpenUnison, the login is also an attribute named after its column.
  const taken = new Set([id, version, password, times.created, times.modified])
  const columns =
    users.columns === undefined
      ? table.all
          .filter((column) => column === name || (!taken.has(column) && isUsable(column)))
          .map((column) => ({ attribute: column.name, column }))
      : attributeColumns(table, users.columns)
  const values: ValuesLayout[] = []
  for (const [attribute, config] of users.values) values.push(await valuesLayout(reader, attribute, config))
  if (id !== name) checkKey(table, id)
  const user: UserLayout = { table: users.table, name, id, version, times, password, columns, values }
  return { users: user, groups: groups === undefined ? undefined : await groupLayout(reader, groups, user) }
}

async function valuesLayout(reader: SqlReader, attribute: string, config: ValuesConfig): Promise<ValuesLayout> {
  const table = await TableReader.open(reader, config.table)
  const position = config.position === undefined ? undefined : table.writable(config.position)
  if (position !== undefined && position.kind !== 'integer') {
    throw new Error(
      `column "${position.name}" of table "${table.shown}" cannot number values: it is of type ${position.type}`,
    )
  }
  return {
    attribute,
    table: config.table,
    user: table.writable(config.user),
    value: table.writable(config.value),
    position,
  }
}

async function groupLayout(reader: SqlReader, config: GroupsConfig, users: UserLayout): Promise<GroupLayout> {
  const link = await TableReader.open(reader, config.members.table)
  const members = {
    table: config.members.table,
    user: link.writable(config.members.user),
    group: link.writable(config.members.group),
  }
  const userRef = config.userBy === 'id' ? users.id : users.name
  if (config.own === undefined) return { members, userRef, own: undefined }
  const { own } = config
  const table = await TableReader.open(reader, own.table)
  const name = table.writable(own.name)
  const id = own.id === undefined ? name : table.column(own.id)
  if (id !== name) checkKey(table, id)
  const columns = attributeColumns(table, own.columns)
  const ref = own.groupBy === 'id' ? id : name
  const times = timeColumns(table, own.times)
  const entry = { table: own.table, name, id, version: versionColumn(table, own.version), times, columns }
  return { members, userRef, own: { ...entry, ref, createMissing: own.createMissing } }
}

const attributeColumns = (table: TableReader, columns: ReadonlyMap<string, string>): AttributeColumn[] =>
  Array.from(columns, ([attribute, name]) => ({ attribute, column: table.writable(name) }))

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

function timeColumns(table: TableReader, { created, modified }: TimesConfig): TimeColumns {
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

const isUsable = (column: Column): boolean => column.kind !== 'binary' && !column.generated

class TableReader {
  readonly shown: string
  readonly #columns: ReadonlyMap<string, Column>

  static async open(reader: SqlReader, table: TableName): Promise<TableReader> {
    return new TableReader(showTable(table), await readColumns(reader, table))
  }

  constructor(shown: string, columns: ReadonlyMap<string, Column>) {
    if (columns.size === 0) throw new Error(`there is no table "${shown}" that this account may see`)
    this.shown = shown
    this.#columns = columns
  }

  get all(): readonly Column[] {
    return [...this.#columns.values()]
  }

  column(name: string): Column {
    const column = this.#columns.get(name)
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
      a.attgenerated <> '' as generated
    from pg_attribute as a
    join pg_type as t on t.oid = a.atttypid
    join pg_type as b on b.oid = case when t.typtype = 'd' then t.typbasetype else t.oid end
    where a.attrelid = to_regclass(cast(${name} as text)) and a.attnum > 0 and not a.attisdropped
    order by a.attnum`)
  return rows.map((row) => {
    const type = textIn(row, 'type')
    const modifier = Number(textIn(row, 'modifier'))
    return {
      name: textIn(row, 'name'),
      type,
      ...postgresType(type, modifier, textIn(row, 'category')),
      required: textIn(row, 'required') === 't',
      hasDefault: textIn(row, 'has_default') === 't',
      generated: textIn(row, 'generated') === 't',
    }
  })
}

type TypeFields = Pick<Column, 'kind' | 'maxLength' | 'bits' | 'precision' | 'scale' | 'zoned'>

/** A type modifier is four more than the number in parentheses. */
function postgresType(type: string, modifier: number, category: string): TypeFields {
  const length = modifier < 4 ? {} : { maxLength: modifier - 4 }
  switch (type) {
    case 'text':
      return { kind: 'text' }
    case 'character varying':
      return { kind: 'text', ...length }
    case 'character':
      return { kind: 'padded', ...length }
    case 'smallint':
      return { kind: 'integer', bits: 16 }
    case 'integer':
      return { kind: 'integer', bits: 32 }
    case 'bigint':
      return { kind: 'integer', bits: 64 }
    case 'numeric':
      if (modifier < 4) return { kind: 'decimal' }
      return { kind: 'decimal', precision: ((modifier - 4) >> 16) & 0xffff, scale: (modifier - 4) & 0x7ff }
    case 'real':
      return { kind: 'float', precision: 6 }
    case 'double precision':
      return { kind: 'float', precision: 15 }
    case 'boolean':
    case 'date':
    case 'uuid':
      return { kind: type }
    case 'timestamp with time zone':
      return { kind: 'timestamp', zoned: true }
    case 'timestamp without time zone':
      return { kind: 'timestamp' }
    case 'bytea':
      return { kind: 'binary' }
    default:
      return { kind: category === 'A' ? 'binary' : 'other' }
  }
}

async function sqliteColumns(reader: SqlReader, { schema, table }: TableName): Promise<Column[]> {
  const rows = await reader.query(
    sql`select name, type, "notnull" as required, dflt_value is not null as has_default, pk, hidden from pragma_table_xinfo(${table}, ${schema ?? 'main'})`,
  )
  const keys = rows.filter((row) => textIn(row, 'pk') !== '0').length
  return rows.map((row) => {
    const type = textIn(row, 'type').toLowerCase()
    const isRowId = type === 'integer' && keys === 1 && textIn(row, 'pk') === '1'
    return {
      name: textIn(row, 'name'),
      type,
      ...sqliteType(type),
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
