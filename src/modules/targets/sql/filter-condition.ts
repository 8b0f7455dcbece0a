import { sql } from 'kysely'
import type { Filter } from '#identity/filter/ast.ts'
import { type Truth, truthOf, type ValueFilter } from '#identity/filter/truth.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import type { Column } from './column.ts'
import type { ValuesLayout } from './layout.ts'
import { tableId } from './table-name.ts'
import { allOf, anyOf, columnOf, type Sql } from './table-sql.ts'
import { type TimeField, timeCondition } from './table-times.ts'
import { type Condition, valueCondition } from './value-condition.ts'

/** Where the values of an attribute stand. */
export type SearchField =
  | { readonly alias: string; readonly column: Column }
  | { readonly values: ValuesLayout; readonly owner: Sql }
  | { readonly time: TimeField }

/** By the attribute's name in lower case. */
export type SearchFields = ReadonlyMap<string, SearchField>

/**
 * Holds of everything that the filter is true of and, where it is exact, of nothing else; undefined when it would hold
 * of everything and is not exact. Throws BAD_REQUEST for a filter that is too large.
 */
export function filterCondition(filter: Filter, fields: SearchFields, dialect: SqlDialect): Condition | undefined {
  return conditionOf(truthOf(filter), fields, dialect)
}

function conditionOf(truth: Truth, fields: SearchFields, dialect: SqlDialect): Condition | undefined {
  if ('parts' in truth) {
    const parts = truth.parts.map((part) => conditionOf(part, fields, dialect))
    const known = parts.filter((part) => part !== undefined)
    const complete = known.length === parts.length
    if (truth.kind === 'any' && !complete) return undefined
    if (known.length === 0 && !complete) return undefined
    const join = truth.kind === 'all' ? allOf : anyOf
    return { sql: join(known.map((part) => part.sql)), exact: complete && known.every(({ exact }) => exact) }
  }
  const field = fields.get(truth.test.attribute.toLowerCase())
  // Nobody has an attribute that has no place.
  if (field === undefined) return { sql: truth.kind === 'absent' ? sql`1 = 1` : sql`1 = 0`, exact: true }
  switch (truth.kind) {
    case 'present':
      return { sql: present(field), exact: true }
    case 'absent':
      return { sql: sql`not ${present(field)}`, exact: true }
    case 'match':
      return match(truth.test, field, dialect)
    case 'mismatch': {
      const passes = match(truth.test, field, dialect)
      if (passes?.exact !== true) return { sql: present(field), exact: false }
      return { sql: sql`(${present(field)} and not ${passes.sql})`, exact: true }
    }
  }
}

function present(field: SearchField): Sql {
  if ('time' in field) return sql`(${field.time.text} is not null)`
  return 'column' in field
    ? sql`(${columnOf(field.alias, field.column)} is not null)`
    : exists(field.values, field.owner)
}

function match(test: ValueFilter, field: SearchField, dialect: SqlDialect): Condition | undefined {
  if ('time' in field) {
    const condition = timeCondition(test, field.time)
    return condition === undefined ? undefined : { ...condition, sql: sql`(${condition.sql})` }
  }
  if ('column' in field) {
    const condition = valueCondition(test, field.alias, field.column, dialect)
    return condition === undefined ? undefined : { ...condition, sql: sql`(${condition.sql})` }
  }
  const condition = valueCondition(test, 'w', field.values.value, dialect)
  if (condition === undefined) return { sql: exists(field.values, field.owner), exact: false }
  return { sql: exists(field.values, field.owner, condition.sql), exact: condition.exact }
}

function exists({ table, user, value }: ValuesLayout, owner: Sql, condition?: Sql): Sql {
  const tested = condition === undefined ? sql`` : sql` and ${condition}`
  return sql`exists (select 1 from ${tableId(table)} as w where ${columnOf('w', user)} = ${owner} and ${columnOf('w', value)} is not null${tested})`
}
