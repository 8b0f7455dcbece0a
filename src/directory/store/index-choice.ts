import sql, { join, raw, type Sql } from 'sql-template-tag'
import type { DatabaseReader } from '#database/sql-client.ts'
import { dynamic } from '#database/statement.ts'
import { type TimeAttribute, timeAttribute, timeAttributes } from '#identity/entry-times.ts'
import type { Truth, ValueFilter } from '#identity/filter/rewrite-filter.ts'
import { keyLength } from '#identity/paging.ts'
import {
  and,
  attributeValues,
  checkText,
  either,
  keyCondition,
  nameKey,
  ownValue,
  type SearchSpace,
  timeColumn,
  timeTest,
  type ValueSource,
  valueTest,
} from './filter-to-sql.ts'

/** Keys of entries that an index finds. They include all entries for which the filter is true. */
export interface IndexedKeys {
  /** Selects `pk`. */
  readonly keys: Sql
  /** The filter is true for all of them. */
  readonly exact: boolean
  /**
   * Reads a part of an index, which may find few entries or most of them: a range of times, or all values of an
   * attribute.
   */
  readonly isRange?: boolean
}

/** Choices that find this many entries or more are equally large. */
export const maxCounted = 1000

/** How far the choices are counted if a range is among them and all of them are large. */
const maxRange = 50_000

/** How many clauses of a conjunction are compared. */
const maxChoices = 8

/** The clauses by which an index can find the entries, likely good ones first. */
export function indexChoices(truth: Truth, space: SearchSpace): IndexedKeys[] {
  if (truth.kind !== 'all') return [byIndex(truth, space)].filter((found) => found !== undefined)
  const ranges = timeAttributes.flatMap((attribute) => timeRange(truth.parts, attribute, space) ?? [])
  const others = truth.parts
    .filter((part) => !isTimeMatch(part))
    .toSorted((a, b) => selectivity(a) - selectivity(b))
    .flatMap((part) => byIndex(part, space) ?? [])
    .map(({ keys }) => ({ keys, exact: false }))
  return [...others, ...ranges]
}

/**
 * The choice that finds the fewest entries, and how many, counted as far as it matters; undefined without any. A
 * filter does not show which of its values is rare, so the index is queried.
 */
export async function smallestChoice(
  reader: DatabaseReader,
  choices: readonly IndexedKeys[],
): Promise<{ readonly choice: IndexedKeys; readonly size: number } | undefined> {
  const candidates = choices.slice(0, maxChoices)
  if (candidates.length === 0) return undefined
  const smallest = async (limit: number) => {
    const counts = candidates.map(
      ({ keys }, i) =>
        sql`select ${raw(`${i} as choice, count(*) as size`)} from (${keys} limit ${raw(`${limit}`)}) as found`,
    )
    const query = dynamic<{ choice: number; size: number }>(reader.dialect, join(counts, ' union all '))
    return (await reader.query(query)).toSorted((a, b) => a.size - b.size || a.choice - b.choice)[0]
  }
  let best = await smallest(maxCounted)
  const isOpen = candidates.length > 1 && candidates.some(({ isRange }) => isRange)
  if (best !== undefined && best.size >= maxCounted && isOpen) best = await smallest(maxRange)
  const choice = candidates[best?.choice ?? 0]
  return best === undefined || choice === undefined ? undefined : { choice, size: best.size }
}

/** Undefined if every entry has to be tested. */
function byIndex(truth: Truth, space: SearchSpace): IndexedKeys | undefined {
  switch (truth.kind) {
    case 'match':
      return matchesByIndex(truth.test, space)
    case 'mismatch':
    case 'present': {
      const { attribute } = truth.test
      if (ownValue(attribute, space) !== undefined || timeColumn(attribute) !== undefined) return undefined
      return { keys: attributeKeys(attribute, space), exact: truth.kind === 'present' }
    }
    case 'absent':
      return undefined
    case 'all':
      return indexChoices(truth, space)[0]
    case 'any': {
      const scanned = textScan(truth.parts, space)
      if (scanned !== undefined) return scanned
      const parts = truth.parts.map((part) => byIndex(part, space))
      const found = parts.filter((part) => part !== undefined)
      if (found.length < parts.length || found.length === 0) return undefined
      const keys = found.map((part) => part.keys)
      return { keys: join(keys, ' union '), exact: found.every(({ exact }) => exact) }
    }
  }
}

/** The smaller, the fewer entries a clause usually matches. */
function selectivity(truth: Truth): number {
  if (truth.kind === 'any') return 3
  if (truth.kind === 'all') return Math.min(...truth.parts.map(selectivity))
  if (truth.kind !== 'match') return 5
  switch (truth.test.kind) {
    case 'equal':
    case 'approximate':
      return 1
    case 'substring':
      return (truth.test.initial ?? '') === '' ? 5 : 2
    default:
      return 4
  }
}

const isTimeMatch = (truth: Truth): truth is Truth & { kind: 'match' } =>
  truth.kind === 'match' && timeAttribute(truth.test.attribute) !== undefined

/** All bounds of one time together, since each alone may match most entries. */
function timeRange(parts: readonly Truth[], attribute: TimeAttribute, space: SearchSpace): IndexedKeys | undefined {
  const column = timeColumn(attribute)
  const bounds = parts.filter(isTimeMatch).filter(({ test }) => timeAttribute(test.attribute) === attribute)
  if (column === undefined || bounds.length === 0) return undefined
  const conditions = bounds.map(({ test }) => timeTest(test, column))
  // The sign makes planners read the range and sort it, rather than read all entries in the order of their keys.
  const keys = sql`select +e.pk as pk from entries as e
    where e.collection = ${space.collection} and ${join(conditions, ' and ')}`
  return { keys, exact: bounds.length === parts.length, isRange: true }
}

function matchesByIndex(test: ValueFilter, space: SearchSpace): IndexedKeys | undefined {
  const time = timeAttribute(test.attribute)
  if (time !== undefined) return timeRange([{ kind: 'match', test }], time, space)
  const own = ownValue(test.attribute, space)
  checkText(test)
  const byKey = keyCondition(test, own ?? attributeValues)
  const scanned = byKey === undefined ? textScan([{ kind: 'match', test }], space) : undefined
  if (scanned !== undefined) return scanned
  if (own === undefined)
    return { keys: attributeKeys(test.attribute, space, byKey?.condition), exact: byKey?.exact ?? false }
  if (byKey === undefined) return undefined
  const keys = sql`select e.pk as pk from entries as e where e.collection = ${space.collection} and ${byKey.condition}`
  return { keys, exact: byKey.exact }
}

const attributeKeys = (attribute: string, space: SearchSpace, condition?: Sql): Sql =>
  sql`select distinct a.entry as pk from attributes as a
    where a.collection = ${space.collection} and a.name_key = ${nameKey(attribute)}${and(condition)}`

const indexedValues: ValueSource = { ...attributeValues, folded: attributeValues.key }
const longValues: ValueSource = {
  ...attributeValues,
  key: sql`l.value_key`,
  folded: sql`coalesce(l.long_key, l.value_key)`,
  raw: sql`l.value`,
}

/**
 * Entries that contain one of several texts anywhere in the values of one attribute; undefined for any other test.
 * The index has all values except long ones, so the rows of short values are not read.
 */
function textScan(parts: readonly Truth[], space: SearchSpace): IndexedKeys | undefined {
  const tests = parts.flatMap((part) =>
    part.kind === 'match' && part.test.kind === 'substring' && part.test.caseExact !== true ? [part.test] : [],
  )
  const [first] = tests
  if (first === undefined || tests.length < parts.length || ownValue(first.attribute, space) !== undefined)
    return undefined
  const name = nameKey(first.attribute)
  if (timeColumn(name) !== undefined || tests.some(({ attribute }) => nameKey(attribute) !== name)) return undefined
  for (const test of tests) checkText(test)
  const anyOf = (source: ValueSource): Sql => either(tests.map((test) => valueTest(test, source)))
  const inRow = sql`exists (select 1 from attributes as l
    where l.entry = a.entry and l.name_key = a.name_key and ${anyOf(longValues)})`
  // A key of this length may be only the beginning of a value, so its end shows nothing.
  const mayBeCut = sql`length(a.value_key) > ${raw(`${keyLength / 2}`)}`
  const condition = sql`((not (${mayBeCut}) and ${anyOf(indexedValues)}) or (${mayBeCut} and ${inRow}))`
  return { keys: attributeKeys(first.attribute, space, condition), exact: true, isRange: true }
}
