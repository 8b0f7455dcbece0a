import { type Expression, sql } from 'kysely'
import { Attributes } from '#identity/attributes.ts'
import type { Builder } from '#storage/sql/queries.ts'

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

/** The entry itself, one of its values, or the name of a group or member: one statement brings all of them. */
export type EntryRow = readonly [
  part: number,
  entry: number,
  /** Id, attribute name or related name. */
  label: string,
  /** Name, value or related id. */
  content: string,
  /** Version or position. */
  ordinal: number,
  created: number,
  modified: number,
]

const [entryPart, valuePart, relatedPart] = [0, 1, 2]

/**
 * One statement is one snapshot, so an entry is never read half before and half after a change. SQLite takes a cross
 * join's tables in the order in which they are written: the few keys of the page first.
 */
export function readEntries(db: Builder, keys: Expression<{ pk: number }>, related: Related) {
  const zero = sql<number>`0`
  const entries = db
    .with('page', () => keys)
    .selectFrom('page')
    .crossJoin('entries as e')
    .whereRef('e.pk', '=', 'page.pk')
    .select([
      sql<number>`${sql.lit(entryPart)}`.as('part'),
      'e.pk as entry',
      'e.id as label',
      'e.name as content',
      'e.version as ordinal',
      'e.created as created',
      'e.modified as modified',
    ])
    .unionAll((of) =>
      of
        .selectFrom('page')
        .crossJoin('attributes as a')
        .whereRef('a.entry', '=', 'page.pk')
        .select([
          sql<number>`${sql.lit(valuePart)}`.as('part'),
          'a.entry as entry',
          'a.name as label',
          'a.value as content',
          'a.position as ordinal',
          zero.as('created'),
          zero.as('modified'),
        ]),
    )
  if (related === 'none') return entries
  const [own, other] =
    related === 'groups' ? (['user_entry', 'group_entry'] as const) : (['group_entry', 'user_entry'] as const)
  return entries.unionAll((of) =>
    of
      .selectFrom('page')
      .crossJoin('memberships as m')
      .crossJoin('entries as r')
      .whereRef(`m.${own}`, '=', 'page.pk')
      .whereRef('r.pk', '=', `m.${other}`)
      .select([
        sql<number>`${sql.lit(relatedPart)}`.as('part'),
        `m.${own} as entry`,
        'r.name as label',
        'r.id as content',
        zero.as('ordinal'),
        zero.as('created'),
        zero.as('modified'),
      ]),
  )
}

interface Draft {
  row: EntryRow | undefined
  readonly values: Map<string, string[]>
  readonly related: { readonly name: string; readonly id: string }[]
}

/** Rows come in any order. Read by position: taking rows apart as iterables is what a read would mostly cost. */
export function assembleEntries(rows: readonly EntryRow[]): Entry[] {
  const drafts = new Map<number, Draft>()
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]
    if (row === undefined) continue
    let draft = drafts.get(row[1])
    if (draft === undefined) {
      draft = { row: undefined, values: new Map(), related: [] }
      drafts.set(row[1], draft)
    }
    if (row[0] === entryPart) draft.row = row
    else if (row[0] === relatedPart) draft.related.push({ name: row[2], id: row[3] })
    else {
      const values = draft.values.get(row[2])
      if (values === undefined) draft.values.set(row[2], valueAt(row[4], row[3]))
      else values[row[4]] = row[3]
    }
  }
  const found = [...drafts.values()]
  if (found.length > 1) found.sort((a, b) => (a.row?.[1] ?? 0) - (b.row?.[1] ?? 0))
  return found.flatMap((draft) => (draft.row === undefined ? [] : toEntry(draft.row, draft)))
}

function valueAt(position: number, value: string): string[] {
  const values: string[] = []
  values[position] = value
  return values
}

function toEntry(row: EntryRow, { values, related }: Draft): Entry {
  if (related.length > 1) related.sort((a, b) => (a.name < b.name ? -1 : 1))
  return {
    id: row[2],
    name: row[3],
    version: String(row[4]),
    created: new Date(row[5]),
    modified: new Date(row[6]),
    attributes: Attributes.from(values),
    related: related.map((one) => one.name),
    relatedIds: related.map((one) => one.id),
  }
}
