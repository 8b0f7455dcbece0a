import { sql } from 'kysely'
import { timeAttribute } from '#identity/entry-times.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { type PageScope, readPosition, unknownPosition, writePosition } from '#identity/page-position.ts'
import { directoryLimits, type Page, type SortOrder, type UserSearch } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlDialect, SqlReader } from '#storage/client/sql-client.ts'
import { foldKey, isStorable } from '#storage/client/text-keys.ts'
import {
  assembleEntries,
  type Entry,
  type EntryRow,
  type Related,
  readEntries,
  readWithMembers,
} from '#storage/sql/entry-rows.ts'
import { restriction, type Selection, selectEntries } from '#storage/sql/entry-selection.ts'
import type { SearchSpace } from '#storage/sql/filter-to-sql.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { asLists, fixed } from '#storage/sql/queries.ts'
import type { PlacedKey } from '#storage/sql/sorted-keys.ts'
import { searchSorted } from '#storage/sql/sorted-search.ts'

function readOne(dialect: SqlDialect, column: 'id' | 'key', related: Related) {
  return fixed<{ wanted: string; collection: number }, unknown>(dialect, (db, at) =>
    readEntries(
      dialect,
      db.selectFrom('entries').select('pk').where(column, '=', at('wanted')).where('collection', '=', at('collection')),
      related,
    ),
  )
}

/** The entries of any number of keys, which are handed over as one value. */
const byKeys = perDialect((dialect) => {
  const form = (related: Related) =>
    fixed<{ keys: string }, unknown>(dialect, (_, at) =>
      readEntries(
        dialect,
        dialect === 'sqlite'
          ? sql<{ pk: number }>`(select value as pk from json_each(${at('keys')}))`
          : sql<{ pk: number }>`(select unnest(cast(${at('keys')} as bigint[])) as pk)`,
        related,
      ),
    )
  return { groups: form('groups'), none: form('none') }
})

const keyList: Readonly<Record<SqlDialect, (keys: readonly number[]) => string>> = {
  sqlite: (keys) => `[${keys.join()}]`,
  postgres: (keys) => `{${keys.join()}}`,
}

const statements = perDialect((dialect) => {
  const forms = (related: Related) => ({
    byId: readOne(dialect, 'id', related),
    byKey: readOne(dialect, 'key', related),
  })
  return { groups: forms('groups'), none: forms('none') }
})

const withMembers = perDialect((dialect) => {
  const form = (column: 'id' | 'key') =>
    fixed<{ wanted: string; collection: number; users: string; groups: string }, unknown>(dialect, (db, at) =>
      readWithMembers(
        dialect,
        db
          .selectFrom('entries')
          .select('pk')
          .where(column, '=', at('wanted'))
          .where('collection', '=', at('collection')),
        { users: at('users'), groups: at('groups') },
      ),
    )
  return { byId: form('id'), byKey: form('key') }
})

/** `display` names the attributes that members are shown by; where it is empty, they have none. */
export async function findWithMembers(
  reader: SqlReader,
  by: 'byId' | 'byKey',
  wanted: string,
  collection: number,
  display = { users: '', groups: '' },
): Promise<Entry | undefined> {
  const names = { users: foldKey(display.users), groups: foldKey(display.groups) }
  const query = withMembers(reader.dialect)[by]({ wanted, collection, ...names })
  return assembleEntries(await reader.query(asLists<EntryRow>(query)))[0]
}

export async function findEntry(
  reader: SqlReader,
  by: 'byId' | 'byKey',
  wanted: string,
  collection: number,
  related: Related,
): Promise<Entry | undefined> {
  const query = statements(reader.dialect)[related][by]({ wanted, collection })
  return assembleEntries(await reader.query(asLists<EntryRow>(query)))[0]
}

/**
 * Throws BAD_REQUEST for an offset or limit that is none, for a position that no page gave, and for a filter that
 * cannot be asked of a database.
 */
export async function searchEntries(
  reader: SqlReader,
  space: SearchSpace,
  search: UserSearch,
  related: Related,
): Promise<Page<Entry>> {
  const { offset, filter, sort } = search
  const limit = Math.min(search.limit, directoryLimits.page)
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(limit) || offset < 0 || limit < 0) {
    throw new GatewayError('BAD_REQUEST', `not a page: ${search.offset}, ${search.limit}`)
  }
  const scope: PageScope = { of: `${space.nameAttribute} of ${space.collection}`, filter, sort }
  const after = search.after === undefined ? undefined : readPlace(scope, search.after)
  const asked = { space, related, filter, sort, after, offset, limit }
  const found = sort === undefined ? await readInOrder(reader, asked) : await readSorted(reader, asked, sort)
  const { entries: items, last, more } = found
  const total = found.total ?? (await totalOf(reader, asked, found))
  if (!more || last === undefined) return { items, total }
  const { pk, folded, exact } = last
  const counted = isCounted(asked) ? undefined : total
  return { items, total, next: writePosition(scope, { entry: String(pk), folded, exact, total: counted }) }
}

interface Place extends PlacedKey {
  /** What the first page counted. */
  readonly total: number | undefined
}

function readPlace(scope: PageScope, text: string): Place {
  const { entry, folded, exact = '', total } = readPosition(scope, text)
  if (!/^\d{1,15}$/.test(entry) || !isStorable(folded ?? '') || !isStorable(exact)) throw unknownPosition()
  const byTime = scope.sort !== undefined && timeAttribute(scope.sort.attribute) !== undefined
  if (byTime && !/^\d{15}$/.test(folded ?? '')) throw unknownPosition()
  return { pk: Number(entry), folded, exact, total }
}

interface Asked {
  readonly space: SearchSpace
  readonly related: Related
  readonly filter: Filter | undefined
  readonly after: Place | undefined
  readonly offset: number
  readonly limit: number
}

interface Found {
  /** What they were found by. */
  readonly selection?: Selection
  readonly entries: readonly Entry[]
  /** Where the last of them stands. */
  readonly last: PlacedKey | undefined
  /** Others follow. */
  readonly more: boolean
  readonly total: number | undefined
}

const nothing: Found = { entries: [], last: undefined, more: false, total: undefined }

/** One more than asked for is looked for, which tells whether another page follows. */
async function readInOrder(reader: SqlReader, asked: Asked): Promise<Found> {
  const { space, related, filter, after, offset, limit } = asked
  if (limit === 0) return nothing
  const selection = await selectEntries(reader, filter, space, after?.total)
  if (selection.total === 0) return { ...nothing, selection }
  const rows = await reader.query(selection.page(reader.dialect, related, limit + 1, offset, after?.pk ?? 0))
  const entries = assembleEntries(rows)
  if (entries.length <= limit) return { ...nothing, selection, entries }
  const pk = rows.map((row) => row[0]).sort((a, b) => a - b)[limit - 1] ?? 0
  const last = { pk, folded: undefined, exact: '' }
  return { selection, entries: entries.slice(0, limit), last, more: true, total: undefined }
}

/** An entry that goes between the finding of keys and the reading of entries is missing, as if it had gone before. */
async function readSorted(reader: SqlReader, asked: Asked, sort: SortOrder): Promise<Found> {
  const { space, related, filter, after, offset, limit } = asked
  if (limit === 0) return nothing
  const { keys, total } = await searchSorted(reader, space, filter, sort, { after, offset, limit: limit + 1 })
  const page = keys.slice(0, limit)
  const rows = await reader.query(
    asLists<EntryRow>(byKeys(reader.dialect)[related]({ keys: keyList[reader.dialect](page.map(({ pk }) => pk)) })),
  )
  const entries = new Map<number, Entry>()
  for (const row of rows) for (const entry of assembleEntries([row])) entries.set(row[0], entry)
  return {
    entries: page.flatMap(({ pk }) => entries.get(pk) ?? []),
    last: page.at(-1),
    more: keys.length > limit,
    total,
  }
}

/** The number of all is kept ready, so that asking for it costs nothing. */
const isCounted = ({ filter }: Asked): boolean => restriction(filter) === undefined

/** A page that is the last tells the total by itself; behind the first, what that one counted is near enough. */
async function totalOf(reader: SqlReader, asked: Asked, { selection, entries, more }: Found): Promise<number> {
  const { space, filter, after, offset, limit } = asked
  const { length } = entries
  if (after === undefined && !more && limit > 0 && (length > 0 || offset === 0)) return offset + length
  if (after?.total !== undefined && !isCounted(asked)) return after.total
  const counted = selection ?? (await selectEntries(reader, filter, space))
  if (counted.total !== undefined) return counted.total
  const [row] = await reader.query(counted.count(reader.dialect))
  return row?.total ?? 0
}
