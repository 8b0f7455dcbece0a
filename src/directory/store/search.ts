import sql, { raw, type Sql } from 'sql-template-tag'
import type { DatabaseReader, SqlQuery } from '#database/sql-client.ts'
import { type DialectText, dynamic, statement } from '#database/statement.ts'
import { assertStorable, foldKey, isLong, isStorable } from '#database/text-keys.ts'
import { timeAttribute } from '#identity/entry-times.ts'
import type { CompareFilter, Filter } from '#identity/filter/ast.ts'
import type { Truth } from '#identity/filter/rewrite-filter.ts'
import { type PageScope, readPosition, unknownPosition, writePosition } from '#identity/paging.ts'
import type { SearchPage, SearchQuery, SortOrder } from '#identity/search.ts'
import { directoryLimits } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import { type Entry, type EntryRow, type Related, readRows, selectPage, toEntries, toEntry } from './entries.ts'
import { count, restriction, type SearchSpace, truthCondition } from './filter-to-sql.ts'
import { type IndexedKeys, indexChoices, maxCounted, smallestChoice } from './index-choice.ts'
import { type EntryPosition, searchSorted } from './sorted-search.ts'

/** A search reads no members. */
type SearchRelated = Exclude<Related, 'members' | 'fewMembers'>

/**
 * Throws BAD_REQUEST for an invalid offset or limit, for a position that no page returned, and for a filter that a
 * database can't evaluate.
 */
export async function searchEntries(
  reader: DatabaseReader,
  space: SearchSpace,
  search: SearchQuery,
  related: SearchRelated,
): Promise<SearchPage<Entry>> {
  const { offset, filter, sort, uncounted = false } = search
  const limit = Math.min(search.limit, directoryLimits.page)
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(limit) || offset < 0 || limit < 0) {
    throw new GatewayError('BAD_REQUEST', `invalid page: offset ${offset}, limit ${search.limit}`)
  }
  const scope: PageScope = { of: `${space.nameAttribute} of ${space.collection}`, filter, sort }
  const after = search.after === undefined ? undefined : readStart(scope, search.after)
  const request = { space, related, filter, sort, after, offset, limit, uncounted }
  const found = sort === undefined ? await readInOrder(reader, request) : await readSorted(reader, request, sort)
  const { entries: items, last, more } = found
  const total = found.total ?? (uncounted ? seen(request, found) : await totalOf(reader, request, found))
  if (!more || last === undefined) return { items, total }
  const { pk, folded, exact } = last
  const counted = uncounted || hasStoredTotal(request) ? undefined : total
  return { items, total, next: writePosition(scope, { entry: String(pk), folded, exact, total: counted }) }
}

interface PageRequest {
  readonly space: SearchSpace
  readonly related: SearchRelated
  readonly filter: Filter | undefined
  readonly after: PageStart | undefined
  readonly offset: number
  readonly limit: number
  readonly uncounted: boolean
}

interface PageStart extends EntryPosition {
  /** The count of the first page. */
  readonly total: number | undefined
}

function readStart(scope: PageScope, text: string): PageStart {
  const { entry, folded, exact = '', total } = readPosition(scope, text)
  if (!/^\d{1,15}$/.test(entry) || !isStorable(folded ?? '') || !isStorable(exact)) throw unknownPosition()
  const byTime = scope.sort !== undefined && timeAttribute(scope.sort.attribute) !== undefined
  if (byTime && !/^\d{15}$/.test(folded ?? '')) throw unknownPosition()
  return { pk: Number(entry), folded, exact, total }
}

interface FoundPage {
  readonly selection?: Selection
  readonly entries: readonly Entry[]
  readonly last: EntryPosition | undefined
  /** Whether other entries follow. */
  readonly more: boolean
  readonly total: number | undefined
}

const nothing: FoundPage = { entries: [], last: undefined, more: false, total: undefined }

/** Reads one more than requested, which shows whether another page follows. */
async function readInOrder(reader: DatabaseReader, request: PageRequest): Promise<FoundPage> {
  const { space, related, filter, after, offset, limit } = request
  if (limit === 0) return nothing
  const near = request.uncounted ? await readNearby(reader, request) : undefined
  if (near !== undefined) return near
  const selection = await selectEntries(reader, filter, space, after?.total)
  if (selection.total === 0) return { ...nothing, selection }
  const slice = { limit: limit + 1, offset, after: after?.pk ?? 0 }
  return { ...pageOf(await readRows(reader, selection.page(reader.dialect, related, slice)), limit), selection }
}

/** Of one more row than requested. */
function pageOf(rows: readonly EntryRow[], limit: number): FoundPage {
  const entries = toEntries(rows)
  if (entries.length <= limit) return { ...nothing, entries }
  const pk = rows.map((row) => row[0]).sort((a, b) => a - b)[limit - 1] ?? 0
  const last = { pk, folded: undefined, exact: '' }
  return { entries: entries.slice(0, limit), last, more: true, total: undefined }
}

/** How many tests of entries in their order are made for each of the page before an index is used. */
const testedForEach = 50
const maxTested = 10_000

/**
 * An index finds all matches, which have to be sorted: of a frequent value most of them for nothing. A page of frequent
 * matches is among the next entries. Undefined if it isn't.
 */
async function readNearby(reader: DatabaseReader, request: PageRequest): Promise<FoundPage | undefined> {
  const { space, related, filter, after, offset, limit } = request
  const truth = restriction(filter)
  if (truth === undefined || plainEquality(truth) !== undefined) return undefined
  const { collection } = space
  const start = after?.pk ?? 0
  const size = Math.ceil(Math.min(maxTested, limit * testedForEach) / testsOf(truth))
  const window = await findNearby.first(reader, { collection, after: start, size })
  const { first, last } = { first: window?.first ?? start, last: window?.last ?? start }
  // The same range as in `nextKeys`.
  const [range, order] =
    reader.dialect === 'sqlite'
      ? [sql`e.collection = ${collection} and e.pk >= ${first} and e.pk <= ${last}`, sql`pk`]
      : [
          sql`(e.collection, e.pk) >= (${collection}, ${first}) and (e.collection, e.pk) <= (${collection}, ${last})`,
          sql`e.collection, e.pk`,
        ]
  const page = sql`select e.pk as pk from entries as e where ${range} and ${truthCondition(truth, space, false)}
    order by ${order} limit ${count(limit + 1)} offset ${count(offset)}`
  const query = dynamic<EntryRow>(
    reader.dialect,
    sql`with page as (${page}) ${raw(selectPage(reader.dialect, related))}`,
  )
  const found = pageOf(await readRows(reader, query), limit)
  return found.more || (window?.found ?? 0) < size ? found : undefined
}

/** How many tests of values an entry may need. */
const testsOf = (truth: Truth): number =>
  truth.kind === 'all' || truth.kind === 'any' ? truth.parts.reduce((sum, part) => sum + testsOf(part), 1) : 1

const findNearby = statement<
  { collection: number; after: number; size: number },
  { first: number | null; last: number | null; found: number }
>((on) => `select min(pk) as first, max(pk) as last, count(*) as found from (${nextKeys(on)} limit :size) as next`)

/**
 * The keys of a collection behind `:after`, in order. Only an order by the collection too keeps PostgreSQL from reading all
 * entries in the order of their keys, such as a million users before the first group.
 */
function nextKeys({ name }: DialectText): string {
  if (name === 'sqlite') return 'select pk from entries where collection = :collection and pk > :after order by pk'
  const collection = 'cast(:collection as bigint)'
  return `select pk from entries where (collection, pk) > (${collection}, cast(:after as bigint))
    and (collection, pk) < (${collection} + 1, cast(0 as bigint)) order by collection, pk`
}

/** An entry that is deleted between the two statements is missing, as if it had been deleted before the first. */
async function readSorted(reader: DatabaseReader, request: PageRequest, sort: SortOrder): Promise<FoundPage> {
  const { space, related, filter, after, offset, limit } = request
  if (limit === 0) return nothing
  const { positions, total } = await searchSorted(reader, space, filter, sort, { after, offset, limit: limit + 1 })
  const page = positions.slice(0, limit)
  const keys = keyList[reader.dialect](page.map(({ pk }) => pk))
  const rows = await readRows(reader, readByKeys[related].query(reader.dialect, { keys }))
  const entries = new Map(rows.map((row) => [row[0], toEntry(row)]))
  return {
    entries: page.flatMap(({ pk }) => entries.get(pk) ?? []),
    last: page.at(-1),
    more: positions.length > limit,
    total,
  }
}

/** Any number of keys is one value, so that one statement serves all pages. */
export const keyList: Readonly<Record<SqlDialect, (keys: readonly number[]) => string>> = {
  sqlite: (keys) => `[${keys.join()}]`,
  postgres: (keys) => `{${keys.join()}}`,
}
export const listedKeys: Readonly<Record<SqlDialect, string>> = {
  sqlite: 'select value as pk from json_each(:keys)',
  postgres: 'select unnest(cast(:keys as bigint[])) as pk',
}
const byKeys = (related: SearchRelated) =>
  statement<{ keys: string }, EntryRow>(({ name }) => `with page as (${listedKeys[name]}) ${selectPage(name, related)}`)
const readByKeys = { groups: byKeys('groups'), none: byKeys('none') }

/** The size of a collection is stored, so reading it costs nothing. */
const hasStoredTotal = ({ filter }: PageRequest): boolean => restriction(filter) === undefined

/** A total that is not counted. */
const seen = ({ offset }: PageRequest, { entries, more }: FoundPage): number => offset + entries.length + (more ? 1 : 0)

/** The last page shows the total; pages after the first repeat what that one counted, which is near enough. */
async function totalOf(
  reader: DatabaseReader,
  request: PageRequest,
  { selection, entries, more }: FoundPage,
): Promise<number> {
  const { space, filter, after, offset, limit } = request
  const { length } = entries
  if (after === undefined && !more && limit > 0 && (length > 0 || offset === 0)) return offset + length
  if (after?.total !== undefined && !hasStoredTotal(request)) return after.total
  const counted = selection ?? (await selectEntries(reader, filter, space))
  if (counted.total !== undefined) return counted.total
  const [row] = await reader.query(counted.count(reader.dialect))
  return row?.total ?? 0
}

/** The entries of a search, as the statements that read a page of them and count them. */
interface Selection {
  page(dialect: SqlDialect, related: SearchRelated, slice: Slice): SqlQuery<EntryRow>
  count(dialect: SqlDialect): SqlQuery<{ total: number }>
  /** The result of `count`, if it is known. */
  readonly total?: number
}

/** `after` is the key of the last entry of the previous page; zero for the first page. */
interface Slice {
  readonly limit: number
  readonly offset: number
  readonly after: number
}

/** `known` is what an earlier page counted. Throws BAD_REQUEST for a filter that a database can't evaluate. */
async function selectEntries(
  reader: DatabaseReader,
  filter: Filter | undefined,
  space: SearchSpace,
  known?: number,
): Promise<Selection> {
  const truth = restriction(filter)
  if (truth === undefined) return allEntries(space)
  const equal = plainEquality(truth)
  if (equal !== undefined) return equalEntries(equal, space)
  const choices = indexChoices(truth, space)
  const choice = choices.length < 2 ? choices[0] : (await smallestChoice(reader, choices))?.choice
  if (choice?.isRange && choice.exact) return rangeEntries(reader, truth, space, choice, known)
  return filteredEntries(truth, space, choice)
}

function allEntries({ collection }: SearchSpace): Selection {
  return {
    page: (dialect, related, slice) => {
      const query = pages[related].all.query(dialect, { ...slice, collection, name: '', value: '' })
      // PostgreSQL plans a named statement for pages of any size and then reads whole tables. Without a name, it plans for
      // this page.
      return dialect === 'postgres' ? { ...query, name: undefined } : query
    },
    count: (dialect) => readSize.query(dialect, { collection }),
  }
}

/** Most searches compare one attribute with one value. Their statements stay prepared: composing them costs more. */
function equalEntries(test: CompareFilter, { collection, nameAttribute }: SearchSpace): Selection {
  assertStorable('filter', test.attribute)
  assertStorable('filter', test.value)
  const name = foldKey(test.attribute)
  const by = name === foldKey(nameAttribute) ? 'key' : name === 'id' ? 'id' : 'value'
  const values = { collection, name, value: foldKey(test.value) }
  return {
    page: (dialect, related, slice) => pages[related][by].query(dialect, { ...values, ...slice }),
    count: (dialect) => counts[by].query(dialect, values),
  }
}

function plainEquality(truth: Truth): CompareFilter | undefined {
  if (truth.kind !== 'match' || truth.test.kind === 'substring') return undefined
  const { kind, value, caseExact = false } = truth.test
  if (timeAttribute(truth.test.attribute) !== undefined) return undefined
  const isPlain = (kind === 'equal' || kind === 'approximate') && !caseExact && !isLong(foldKey(value))
  return isPlain ? truth.test : undefined
}

/**
 * A part of an index is read as a whole for each page. If it finds most of a large collection, reading all entries
 * in order skips few.
 */
async function rangeEntries(
  reader: DatabaseReader,
  truth: Truth,
  space: SearchSpace,
  range: IndexedKeys,
  known: number | undefined,
): Promise<Selection> {
  const selection = filteredEntries(truth, space, range)
  const [counted] = known === undefined ? await reader.query(selection.count(reader.dialect)) : []
  const total = known ?? counted?.total ?? 0
  if (total < maxCounted) return { ...selection, total }
  const all = await readSize.first(reader, { collection: space.collection })
  // A row costs about four times an entry of the index.
  const isMost = ((all?.total ?? 0) - total) * 4 < total
  return { ...(isMost ? filteredEntries(truth, space, undefined) : selection), total }
}

/**
 * The filter is three-valued, exactly as in `evaluate`. Where an index serves a clause, only the entries that it finds are
 * tested.
 */
function filteredEntries(truth: Truth, space: SearchSpace, indexed: IndexedKeys | undefined): Selection {
  const keys = indexed?.exact ? indexed.keys : testedKeys(truth, space, indexed)
  const behind = (after: number): Sql => {
    if (after === 0) return keys
    return indexed?.exact
      ? sql`select pk from (${keys}) as found where pk > ${after}`
      : sql`${keys} and e.pk > ${after}`
  }
  return {
    page: (dialect, related, { limit, offset, after }) => {
      const page = sql`${behind(after)} order by pk limit ${count(limit)} offset ${count(offset)}`
      return dynamic(dialect, sql`with page as (${page}) ${raw(selectPage(dialect, related))}`)
    },
    count: (dialect) => dynamic(dialect, sql`select count(*) as total from (${keys}) as keys`),
  }
}

function testedKeys(truth: Truth, space: SearchSpace, indexed: IndexedKeys | undefined): Sql {
  // An index finds rows of this collection only; naming the collection again would mislead planners.
  const candidates = indexed === undefined ? sql`e.collection = ${space.collection}` : sql`e.pk in (${indexed.keys})`
  return sql`select e.pk as pk from entries as e where ${candidates} and ${truthCondition(truth, space, false)}`
}

const readSize = statement<{ collection: number }, { total: number }>(
  `select cast(coalesce(sum(size), 0) as bigint) as total from collection_sizes where collection = :collection`,
)

interface EqualValues {
  readonly collection: number
  readonly name: string
  readonly value: string
}

interface EqualKeys {
  /** The column of the key. */
  readonly column: string
  readonly text: string
}

/** The keys of the entries that one comparison finds. */
const equalKeys = {
  key: { column: 'pk', text: 'select pk from entries where collection = :collection and key = :value' },
  id: { column: 'pk', text: 'select pk from entries where collection = :collection and id = :value' },
  value: {
    column: 'entry',
    text: `select distinct entry as pk from attributes
      where collection = :collection and name_key = :name and value_key = :value`,
  },
}

const pagesOf = (related: SearchRelated) => {
  const page = (keys: (on: DialectText) => string) =>
    statement<EqualValues & Slice, EntryRow>(
      (on) => `with page as (${keys(on)} limit :limit offset :offset) ${selectPage(on.name, related)}`,
    )
  const equal = ({ column, text }: EqualKeys) => page(() => `${text} and ${column} > :after order by pk`)
  return { all: page(nextKeys), key: equal(equalKeys.key), id: equal(equalKeys.id), value: equal(equalKeys.value) }
}
const pages = { groups: pagesOf('groups'), none: pagesOf('none') }

const countOf = ({ text }: EqualKeys) =>
  statement<EqualValues, { total: number }>(`select count(*) as total from (${text}) as keys`)
const counts = { key: countOf(equalKeys.key), id: countOf(equalKeys.id), value: countOf(equalKeys.value) }
