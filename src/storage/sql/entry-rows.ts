import { type Expression, type RawBuilder, sql } from 'kysely'
import type { Attributes } from '#identity/attributes.ts'
import { readHeld } from '#storage/sql/held-values.ts'
import { builderFor } from '#storage/sql/queries.ts'
import type { SqlDialect } from '#storage/sql/sql-client.ts'

/** A user with its groups, or a group with its members, as the tables hold it. */
export interface Entry {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly created: Date
  readonly modified: Date
  readonly attributes: Attributes
  /** Names of groups or of members, and their ids in the same order. */
  readonly related: readonly string[]
  readonly relatedIds: readonly string[]
}

/** Which of an entry's memberships are read along. */
export type Related = 'groups' | 'members' | 'none'

/** An entry with its memberships folded into it: few and large cells are read faster than many small ones. */
export type EntryRow = readonly [
  pk: number,
  id: string,
  name: string,
  version: number,
  created: number,
  modified: number,
  /** See `held-values.ts`. */
  held: string,
  /** JSON: a list of [name, id]; null or an empty list when there are none. */
  related: string | null,
]

/** A list of rows as JSON text. */
const jsonRows: Readonly<Record<SqlDialect, (columns: RawBuilder<unknown>) => RawBuilder<string | null>>> = {
  sqlite: (columns) => sql`json_group_array(json_array(${columns}))`,
  postgres: (columns) => sql`json_agg(json_build_array(${columns}))::text`,
}

/** The cross join makes SQLite take the memberships of the entry first. */
const relatedOf = {
  groups: (rows: RawBuilder<string | null>) =>
    sql<
      string | null
    >`(select ${rows} from memberships m cross join entries r where m.user_entry = e.pk and r.pk = m.group_entry)`,
  members: (rows: RawBuilder<string | null>) =>
    sql<
      string | null
    >`(select ${rows} from memberships m cross join entries r where m.group_entry = e.pk and r.pk = m.user_entry)`,
  none: () => sql<string | null>`null`,
}

/**
 * One statement is one snapshot, so an entry is never read half before and half after a change. SQLite takes a cross
 * join's tables in the order in which they are written: the few keys of the page first.
 */
export function readEntries(dialect: SqlDialect, keys: Expression<{ pk: number }>, related: Related) {
  const rows = jsonRows[dialect]
  return builderFor(dialect)
    .with('page', () => keys)
    .selectFrom('page')
    .crossJoin('entries as e')
    .whereRef('e.pk', '=', 'page.pk')
    .select([
      'e.pk as pk',
      'e.id as id',
      'e.name as name',
      'e.version as version',
      'e.created as created',
      'e.modified as modified',
      'e.held as held',
      relatedOf[related](rows(sql`r.name, r.id`)).as('related'),
    ])
}

/** Rows come in any order. */
export function assembleEntries(rows: readonly EntryRow[]): Entry[] {
  const sorted = rows.length > 1 ? rows.toSorted((a, b) => a[0] - b[0]) : rows
  return sorted.map(toEntry)
}

function toEntry(row: EntryRow): Entry {
  const related = readJson<readonly [name: string, id: string]>(row[7])
  if (related.length > 1) related.sort((a, b) => (a[0] < b[0] ? -1 : 1))
  return {
    id: row[1],
    name: row[2],
    version: String(row[3]),
    created: new Date(row[4]),
    modified: new Date(row[5]),
    attributes: readHeld(row[6]),
    related: related.map((one) => one[0]),
    relatedIds: related.map((one) => one[1]),
  }
}

const readJson = <T>(text: string | null): T[] => (text === null || text === '[]' ? [] : JSON.parse(text))
