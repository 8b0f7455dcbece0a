import { directoryLimits, type Page, type UserSearch } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { assembleEntries, type Entry, type EntryRow, type Related, readEntries } from '#storage/sql/entry-rows.ts'
import { selectEntries } from '#storage/sql/entry-selection.ts'
import type { SearchSpace } from '#storage/sql/filter-to-sql.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { asLists, fixed } from '#storage/sql/queries.ts'
import type { SqlDialect, SqlReader } from '#storage/sql/sql-client.ts'

function readOne(dialect: SqlDialect, column: 'id' | 'key', related: Related) {
  return fixed<{ wanted: string; collection: number }, unknown>(dialect, (db, at) =>
    readEntries(
      dialect,
      db.selectFrom('entries').select('pk').where(column, '=', at('wanted')).where('collection', '=', at('collection')),
      related,
    ),
  )
}

const statements = perDialect((dialect) => {
  const forms = (related: Related) => ({
    byId: readOne(dialect, 'id', related),
    byKey: readOne(dialect, 'key', related),
  })
  return { groups: forms('groups'), members: forms('members'), none: forms('none') }
})

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

/** Throws BAD_REQUEST for an offset or limit that is none, and for a filter that cannot be asked of a database. */
export async function searchEntries(
  reader: SqlReader,
  space: SearchSpace,
  search: UserSearch,
  related: Related,
): Promise<Page<Entry>> {
  const { offset } = search
  const limit = Math.min(search.limit, directoryLimits.page)
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(limit) || offset < 0 || limit < 0) {
    throw new GatewayError('BAD_REQUEST', `not a page: ${search.offset}, ${search.limit}`)
  }
  const selection = await selectEntries(reader, search.filter, space)
  const { dialect } = reader
  const items = limit === 0 ? [] : assembleEntries(await reader.query(selection.page(dialect, related, limit, offset)))
  // A page that is not full tells the total by itself.
  if (items.length < limit && (items.length > 0 || offset === 0)) return { items, total: offset + items.length }
  const [row] = await reader.query(selection.count(dialect))
  return { items, total: row?.total ?? 0 }
}
