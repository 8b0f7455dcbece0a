import { sql } from 'kysely'
import type { SqlReader, SqlRow } from '#protocols/sql/sql-database.ts'
import type { Column, ColumnKind } from './column.ts'
import type { TableName } from './table-name.ts'

/** The columns of a table or view in the order they stand there; none when there is no such table. */
export async function readColumns(reader: SqlReader, table: TableName): Promise<ReadonlyMap<string, Column>> {
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

/** A type modifier is four more than what was written in parentheses. */
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

/** The first that fits, as in SQLite's own rules of affinity (https://www.sqlite.org/datatype3.html, 3.1). */
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
