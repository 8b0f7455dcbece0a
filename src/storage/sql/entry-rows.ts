import { type Expression, type RawBuilder, sql } from 'kysely'
import type { Attributes } from '#identity/attributes.ts'
import type { MemberGroup } from '#identity/group.ts'
import type { SqlDialect } from '#storage/client/sql-client.ts'
import { readHeld } from '#storage/sql/held-values.ts'
import { builderFor } from '#storage/sql/queries.ts'

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
  /** With groups: whether one of them is a member of another group. */
  readonly groupsAreNested?: boolean
  /** With members: the first values of the attribute that was asked for, in the same order. */
  readonly displays?: readonly (string | undefined)[]
  /** With members: those that are groups. */
  readonly memberGroups?: readonly MemberGroup[]
}

/** Which of an entry's memberships are read along. */
export type Related = 'groups' | 'none'

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
  /** JSON: a list of [name, id, extra]; null or an empty list when there are none. */
  related: string | null,
  /** The same of groups that are members; only where members are read. */
  memberGroups?: string | null,
]

/** A number for a group, whether it is nested (0 or 1); for a member, the value that it is shown by. */
type RelatedRow = readonly [name: string, id: string, extra: number | string | null]

/** A list of rows as JSON text. */
const jsonRows: Readonly<Record<SqlDialect, (columns: RawBuilder<unknown>) => RawBuilder<string | null>>> = {
  sqlite: (columns) => sql`json_group_array(json_array(${columns}))`,
  postgres: (columns) => sql`json_agg(json_build_array(${columns}))::text`,
}

/** Which memberships are read along. The cross joins make SQLite take the memberships of the entry first. */
const groupsOf = (rows: (columns: RawBuilder<unknown>) => RawBuilder<string | null>) => {
  const isNested = sql`case when exists (select 1 from nested_groups n where n.member_entry = r.pk) then 1 else 0 end`
  return sql<
    string | null
  >`(select ${rows(sql`r.name, r.id, ${isNested}`)} from memberships m cross join entries r where m.user_entry = e.pk and r.pk = m.group_entry)`
}

/** The folded names of the attributes whose first values members are shown by. */
export interface DisplayPlaces {
  readonly users: RawBuilder<string>
  readonly groups: RawBuilder<string>
}

function membersOf(rows: (columns: RawBuilder<unknown>) => RawBuilder<string | null>, display: DisplayPlaces) {
  const shown = (name: RawBuilder<string>): RawBuilder<unknown> =>
    sql`r.name, r.id, (select a.value from attributes a where a.entry = r.pk and a.name_key = ${name} and a.position = 0)`
  return {
    users: sql<
      string | null
    >`(select ${rows(shown(display.users))} from memberships m cross join entries r where m.group_entry = e.pk and r.pk = m.user_entry)`,
    groups: sql<
      string | null
    >`(select ${rows(shown(display.groups))} from nested_groups n cross join entries r where n.group_entry = e.pk and r.pk = n.member_entry)`,
  }
}

/**
 * One statement is one snapshot, so an entry is never read half before and half after a change. SQLite takes a cross
 * join's tables in the order in which they are written: the few keys of the page first.
 */
export function readEntries(dialect: SqlDialect, keys: Expression<{ pk: number }>, related: Related) {
  return entryColumns(dialect, keys).select([
    (related === 'groups' ? groupsOf(jsonRows[dialect]) : sql<string | null>`null`).as('related'),
  ])
}

export function readWithMembers(dialect: SqlDialect, keys: Expression<{ pk: number }>, display: DisplayPlaces) {
  const members = membersOf(jsonRows[dialect], display)
  return entryColumns(dialect, keys).select([members.users.as('related'), members.groups.as('member_groups')])
}

function entryColumns(dialect: SqlDialect, keys: Expression<{ pk: number }>) {
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
    ])
}

/** Rows come in any order. */
export function assembleEntries(rows: readonly EntryRow[]): Entry[] {
  const sorted = rows.length > 1 ? rows.toSorted((a, b) => a[0] - b[0]) : rows
  return sorted.map(toEntry)
}

function toEntry(row: EntryRow): Entry {
  const related = readRelated(row[7])
  return {
    id: row[1],
    name: row[2],
    version: String(row[3]),
    created: new Date(row[4]),
    modified: new Date(row[5]),
    attributes: readHeld(row[6]),
    related: related.map((one) => one[0]),
    relatedIds: related.map((one) => one[1]),
    ...(row[8] === undefined
      ? { groupsAreNested: related.some((one) => one[2] === 1) }
      : {
          displays: related.map((one) => textOf(one[2])),
          memberGroups: readRelated(row[8]).map(([name, id, extra]) => {
            const display = textOf(extra)
            return { id, name, ...(display === undefined ? {} : { display }) }
          }),
        }),
  }
}

const textOf = (value: number | string | null): string | undefined => (typeof value === 'string' ? value : undefined)

/** By name. */
function readRelated(text: string | null): RelatedRow[] {
  const related = readJson<RelatedRow>(text)
  return related.length > 1 ? related.sort((a, b) => (a[0] < b[0] ? -1 : 1)) : related
}

const readJson = <T>(text: string | null): T[] => (text === null || text === '[]' ? [] : JSON.parse(text))
