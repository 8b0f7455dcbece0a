import { sql } from 'kysely'
import { newId } from '#kernel/ids.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import type { Column } from './column.ts'
import { bound, type Sql } from './table-sql.ts'

/** What a new row has for a version, where the database does not give it one. */
export function firstVersion(version: Column | undefined, dialect: SqlDialect): (readonly [Column, Sql])[] {
  if (version === undefined || version.hasDefault) return []
  return [[version, bound(version, version.kind === 'integer' ? '1' : newId(), dialect)]]
}

export function nextVersion(version: Column | undefined, dialect: SqlDialect): Sql[] {
  if (version === undefined) return []
  const column = sql.id(version.name)
  const next = version.kind === 'integer' ? sql`coalesce(${column}, 0) + 1` : bound(version, newId(), dialect)
  return [sql`${column} = ${next}`]
}
