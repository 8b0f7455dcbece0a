import { sql } from 'kysely'
import { timeAttribute } from '#identity/entry-times.ts'
import type { CompareFilter, Filter } from '#identity/filter/ast.ts'
import { isAlways, type Truth, truthOf } from '#identity/filter/truth.ts'
import type { SqlDialect, SqlQuery, SqlReader } from '#storage/client/sql-client.ts'
import { assertStorable, foldKey, isLong } from '#storage/client/text-keys.ts'
import { type EntryRow, type Related, readEntries } from '#storage/sql/entry-rows.ts'
import {
  choiceSizes,
  count,
  type FilteredKeys,
  filteredKeys,
  type IndexedKeys,
  indexChoices,
  maxCounted,
  type SearchSpace,
} from '#storage/sql/filter-to-sql.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { asLists, type Builder, builderFor, dynamic, fixed, type Place } from '#storage/sql/queries.ts'

/** Clauses of a conjunction among which the rarest is looked for. */
const maxChoices = 8

/** How far the choices are counted where a range of times is among them and all of them are large. */
const maxRange = 50_000

/** The entries that a search is about, as the statements that read a page of them and count them. */
export interface Selection {
  /** Those behind the key `after`, which is zero for the first page. */
  page(dialect: SqlDialect, related: Related, limit: number, offset: number, after: number): SqlQuery<EntryRow>
  count(dialect: SqlDialect): SqlQuery<{ total: number }>
  /** What `count` would find, where that is known already. */
  readonly total?: number
}

/** When a filter is true; undefined when it is so of everything. Throws BAD_REQUEST for one that is too large. */
export function restriction(filter: Filter | undefined): Truth | undefined {
  const truth = filter === undefined ? undefined : truthOf(filter)
  return truth === undefined || isAlways(truth) ? undefined : truth
}

/** `known`: how many they were on an earlier page. Throws BAD_REQUEST for a filter that cannot be asked of a database. */
export async function selectEntries(
  reader: SqlReader,
  filter: Filter | undefined,
  space: SearchSpace,
  known?: number,
): Promise<Selection> {
  const { collection } = space
  const truth = restriction(filter)
  if (truth === undefined) {
    return {
      page: (dialect, related, limit, offset, after) =>
        pageOf(dialect, pages(dialect)[related].all({ collection, limit, offset, after })),
      count: (dialect) => counts(dialect).all({ collection }),
    }
  }
  const equal = plainEquality(truth)
  if (equal !== undefined) return equalSelection(equal, space)
  const choice = await bestChoice(reader, indexChoices(truth, space))
  if (choice?.isRange && choice.exact) return rangeSelection(reader, truth, space, choice, known)
  return keySelection(filteredKeys(truth, space, choice))
}

const keySelection = (keys: FilteredKeys): Selection => ({
  page: (dialect, related, limit, offset, after) =>
    asLists(dynamic(readEntries(dialect, keys.page(limit, offset, after), related))),
  count: (dialect) => dynamic({ compile: () => keys.count().compile(builderFor(dialect)) }),
})

/**
 * A part of an index is read as a whole for each page. Where that finds most of a large collection, a walk through all
 * entries passes over few.
 */
async function rangeSelection(
  reader: SqlReader,
  truth: Truth,
  space: SearchSpace,
  range: IndexedKeys,
  known: number | undefined,
): Promise<Selection> {
  const selection = keySelection(filteredKeys(truth, space, range))
  const [counted] = known === undefined ? await reader.query(selection.count(reader.dialect)) : []
  const total = known ?? counted?.total ?? 0
  if (total < maxCounted) return { ...selection, total }
  const [all] = await reader.query(counts(reader.dialect).all({ collection: space.collection }))
  // A row costs about four times an entry of the index.
  const isMost = ((all?.total ?? 0) - total) * 4 < total
  return { ...(isMost ? keySelection(filteredKeys(truth, space, undefined)) : selection), total }
}

/**
 * PostgreSQL plans a statement that it keeps prepared for a page of any size, and then reads whole tables; one without a
 * name is planned for the page that is asked. For few entries that makes no difference.
 */
const pageOf = (dialect: SqlDialect, query: SqlQuery<unknown>): SqlQuery<EntryRow> =>
  asLists(dialect === 'postgres' ? { ...query, name: undefined } : query)

/** Which of several values is rare cannot be told from the filter, so the index is asked. */
async function bestChoice(reader: SqlReader, choices: readonly IndexedKeys[]): Promise<IndexedKeys | undefined> {
  return choices.length < 2 ? choices[0] : (await smallestChoice(reader, choices))?.choice
}

/** The choice that finds the fewest entries, and how many, counted as far as it matters; undefined without any. */
export async function smallestChoice(
  reader: SqlReader,
  choices: readonly IndexedKeys[],
): Promise<{ readonly choice: IndexedKeys; readonly size: number } | undefined> {
  const candidates = choices.slice(0, maxChoices)
  if (candidates.length === 0) return undefined
  const smallest = async (counted: number) => {
    const sizes = await reader.query(
      dynamic({ compile: () => choiceSizes(candidates, counted).compile(builderFor(reader.dialect)) }),
    )
    return sizes.toSorted((a, b) => a.size - b.size || a.choice - b.choice)[0]
  }
  let best = await smallest(maxCounted)
  const isOpen = candidates.length > 1 && candidates.some(({ isRange }) => isRange)
  if (best !== undefined && best.size >= maxCounted && isOpen) best = await smallest(maxRange)
  const choice = candidates[best?.choice ?? 0]
  return best === undefined || choice === undefined ? undefined : { choice, size: best.size }
}

/** Most searches ask for one value of one attribute; their statements are compiled once, which costs more than they do. */
function equalSelection(test: CompareFilter, { collection, nameAttribute }: SearchSpace): Selection {
  assertStorable('filter', test.attribute)
  assertStorable('filter', test.value)
  const name = foldKey(test.attribute)
  const form = name === foldKey(nameAttribute) ? 'key' : name === 'id' ? 'id' : 'value'
  const values = { collection, name, value: foldKey(test.value) }
  return {
    page: (dialect, related, limit, offset, after) =>
      asLists(pages(dialect)[related][form]({ ...values, limit, offset, after })),
    count: (dialect) => counts(dialect)[form](values),
  }
}

function plainEquality(truth: Truth): CompareFilter | undefined {
  if (truth.kind !== 'match' || truth.test.kind === 'substring') return undefined
  const { kind, value, caseExact = false } = truth.test
  if (timeAttribute(truth.test.attribute) !== undefined) return undefined
  const plain = (kind === 'equal' || kind === 'approximate') && !caseExact && !isLong(foldKey(value))
  return plain ? truth.test : undefined
}

interface Wanted {
  readonly collection: number
  readonly name: string
  readonly value: string
}
interface Slice {
  readonly limit: number
  readonly offset: number
  readonly after: number
}
type WantedPage = Wanted & Slice

const ownEqual = (column: 'key' | 'id') => (db: Builder, at: Place<Wanted>) =>
  db.selectFrom('entries').select('pk').where('collection', '=', at('collection')).where(column, '=', at('value'))

const valueEqual = (db: Builder, at: Place<Wanted>) =>
  db
    .selectFrom('attributes')
    .select('entry as pk')
    .distinct()
    .where('collection', '=', at('collection'))
    .where('name_key', '=', at('name'))
    .where('value_key', '=', at('value'))

const pages = perDialect((dialect) => {
  const forms = (related: Related) => {
    const own = (column: 'key' | 'id') =>
      fixed<WantedPage, unknown>(dialect, (db, at) =>
        readEntries(
          dialect,
          ownEqual(column)(db, at)
            .where('pk', '>', at('after'))
            .orderBy('pk')
            .limit(count(at('limit')))
            .offset(count(at('offset'))),
          related,
        ),
      )
    return {
      all: fixed<{ collection: number } & Slice, unknown>(dialect, (db, at) => {
        const keys = db.selectFrom('entries').select('pk').where('collection', '=', at('collection'))
        return readEntries(
          dialect,
          keys
            .where('pk', '>', at('after'))
            .orderBy('pk')
            .limit(count(at('limit')))
            .offset(count(at('offset'))),
          related,
        )
      }),
      key: own('key'),
      id: own('id'),
      value: fixed<WantedPage, unknown>(dialect, (db, at) =>
        readEntries(
          dialect,
          valueEqual(db, at)
            .where('entry', '>', at('after'))
            .orderBy('pk')
            .limit(count(at('limit')))
            .offset(count(at('offset'))),
          related,
        ),
      ),
    }
  }
  return { groups: forms('groups'), none: forms('none') }
})

const counts = perDialect((dialect) => {
  const total = sql<number>`count(*)`.as('total')
  const own = (column: 'key' | 'id') =>
    fixed<Wanted, { total: number }>(dialect, (db, at) =>
      db.selectFrom(ownEqual(column)(db, at).as('keys')).select(total),
    )
  return {
    all: fixed<{ collection: number }, { total: number }>(dialect, (db, at) =>
      db
        .selectFrom('collection_sizes')
        .select(sql<number>`cast(coalesce(sum(size), 0) as bigint)`.as('total'))
        .where('collection', '=', at('collection')),
    ),
    key: own('key'),
    id: own('id'),
    value: fixed<Wanted, { total: number }>(dialect, (db, at) =>
      db.selectFrom(valueEqual(db, at).as('keys')).select(total),
    ),
  }
})
