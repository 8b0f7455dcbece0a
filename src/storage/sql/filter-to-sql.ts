import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { type TimeAttribute, timeAttribute, timeAttributes, valueMillis } from '#identity/entry-times.ts'
import type { Truth, ValueFilter } from '#identity/filter/truth.ts'
import { keyLength } from '#identity/sort-key.ts'
import { GatewayError } from '#kernel/errors.ts'
import { assertStorable, foldKey } from '#storage/client/text-keys.ts'
import { keyCondition, type ValueSource, valueTest } from '#storage/sql/value-test.ts'

type Condition = RawBuilder<SqlBool>
type Keys = RawBuilder<{ pk: number }>

/** A choice that finds more is simply large. */
export const maxCounted = 1000

/** What is searched: the users or the groups of a directory. */
export interface SearchSpace {
  readonly collection: number
  /** The name by which filters mean an entry's own name. */
  readonly nameAttribute: 'userID' | 'name'
}

/** The keys of the entries that a filter is true of, each once. */
export interface FilteredKeys {
  /** Those behind the key `after`, in the order of creation, in parentheses. */
  page(limit: number, offset: number, after: number): Keys
  count(): RawBuilder<{ total: number }>
}

/** A limit or offset. SQLite would compile the statement anew for each bare parameter in such a place. */
export const count = (value: RawBuilder<number>): RawBuilder<number> => sql`cast(${value} as bigint)`

/** Three-valued, exactly as `evaluate`. Where an index serves a clause, the filter is tested on what that finds alone. */
export function filteredKeys(truth: Truth, space: SearchSpace, indexed: IndexedKeys | undefined): FilteredKeys {
  const keys = indexed?.exact
    ? indexed.keys
    : sql<{ pk: number }>`select e.pk as pk from entries as e where ${
        // The index rows are of this collection alone; naming it again would only lead a planner astray.
        indexed === undefined ? sql`e.collection = ${space.collection}` : sql`e.pk in (${indexed.keys})`
      } and ${truthCondition(truth, space, false)}`
  const behind = (after: number): Keys => {
    if (after === 0) return keys
    return indexed?.exact
      ? sql`select pk from (${keys}) as found where pk > ${after}`
      : sql`${keys} and e.pk > ${after}`
  }
  return {
    page: (limit, offset, after) =>
      sql`(${behind(after)} order by pk limit ${count(sql`${limit}`)} offset ${count(sql`${offset}`)})`,
    count: () => sql`select count(*) as total from (${keys}) as keys`,
  }
}

const attributeValues: ValueSource = {
  key: sql`a.value_key`,
  folded: sql`coalesce(a.long_key, a.value_key)`,
  raw: sql`a.value`,
  number: sql`a.number`,
  cut: true,
}

/** The entry's own name or id, which every entry has once; undefined for a stored attribute. */
export function ownValue(attribute: string, space: SearchSpace): ValueSource | undefined {
  const name = foldKey(attribute)
  if (name === foldKey(space.nameAttribute)) {
    return { key: sql`e.key`, folded: sql`e.key`, raw: sql`e.name`, number: sql`e.number`, cut: false }
  }
  if (name !== 'id') return undefined
  return { key: sql`e.id`, folded: sql`e.id`, raw: sql`e.id`, number: undefined, cut: false }
}

/** The column of one of the entry's times; undefined for any other attribute. */
export function timeColumn(attribute: string): RawBuilder<number> | undefined {
  const name = timeAttribute(attribute)
  if (name === undefined) return undefined
  return name === 'meta.created' ? sql`e.created` : sql`e.modified`
}

const timeOperators = {
  equal: sql`=`,
  approximate: sql`=`,
  greaterOrEqual: sql`>=`,
  lessOrEqual: sql`<=`,
  greater: sql`>`,
  less: sql`<`,
} as const

/** Throws BAD_REQUEST for what can't be asked of a time. */
function timeTest(test: ValueFilter, column: RawBuilder<number>): Condition {
  const millis = test.kind === 'substring' ? undefined : valueMillis(test.value)
  if (test.kind === 'substring' || millis === undefined) {
    const publicText = `${test.attribute} is compared with a date and time such as 2026-01-31T08:00:00.000Z.`
    throw new GatewayError('BAD_REQUEST', publicText, { publicText })
  }
  return sql`${column} ${timeOperators[test.kind]} ${millis}`
}

/** Entries found by an index that include all that pass. */
export interface IndexedKeys {
  readonly keys: Keys
  /** No entry among them fails the filter. */
  readonly exact: boolean
  /** A part of an index is read, whether it finds most entries or few: a range of times, or all values of an attribute. */
  readonly isRange?: boolean
}

/** The clauses by any of which an index can find what passes, likely good ones first. */
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

const isTimeMatch = (truth: Truth): truth is Truth & { kind: 'match' } =>
  truth.kind === 'match' && timeAttribute(truth.test.attribute) !== undefined

/** All bounds of one time together, since each by itself may let most entries through. */
function timeRange(parts: readonly Truth[], attribute: TimeAttribute, space: SearchSpace): IndexedKeys | undefined {
  const column = timeColumn(attribute)
  const bounds = parts.filter(isTimeMatch).filter(({ test }) => timeAttribute(test.attribute) === attribute)
  if (column === undefined || bounds.length === 0) return undefined
  const conditions = bounds.map(({ test }) => timeTest(test, column))
  // The sign makes planners read the range and sort it, rather than walk all entries in the order of their keys.
  const keys = sql<{
    pk: number
  }>`select +e.pk as pk from entries as e where e.collection = ${space.collection} and ${sql.join(conditions, sql` and `)}`
  return { keys, exact: bounds.length === parts.length, isRange: true }
}

/** How many entries each choice finds, counted as far as it matters. */
export function choiceSizes(
  choices: readonly IndexedKeys[],
  counted = maxCounted,
): RawBuilder<{ choice: number; size: number }> {
  const countOf = ({ keys }: IndexedKeys, i: number) =>
    sql`select ${sql.lit(i)} as choice, count(*) as size from (${keys} limit ${sql.lit(counted)}) as found`
  return sql`${sql.join(choices.map(countOf), sql` union all `)}`
}

/** Undefined when all entries have to be looked at. */
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
      return {
        keys: sql`${sql.join(
          found.map(({ keys }) => keys),
          sql` union `,
        )}`,
        exact: found.every(({ exact }) => exact),
      }
    }
  }
}

/** Which clause of several is asked first: the smaller, the fewer entries it lets through as a rule. */
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
  const keys = sql<{
    pk: number
  }>`select e.pk as pk from entries as e where e.collection = ${space.collection} and ${byKey.condition}`
  return { keys, exact: byKey.exact }
}

const indexedValues: ValueSource = { ...attributeValues, folded: attributeValues.key }

/**
 * Entries with one of several texts somewhere in the values of one attribute. The index has those values, all but the long
 * ones, so the rows of short ones are not read. Undefined for any other test.
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
  const anyOf = (source: ValueSource): Condition =>
    sql`(${sql.join(
      tests.map((test) => valueTest(test, source)),
      sql` or `,
    )})`
  const longValues: ValueSource = {
    ...attributeValues,
    key: sql`l.value_key`,
    folded: sql`coalesce(l.long_key, l.value_key)`,
    raw: sql`l.value`,
  }
  const inRow = sql`exists (select 1 from attributes as l where l.entry = a.entry and l.name_key = a.name_key and ${anyOf(longValues)})`
  // A key of this length may be the beginning of a value only, and what it ends with says nothing.
  const mayBeCut = sql`length(a.value_key) > ${sql.lit(keyLength / 2)}`
  const condition = sql<SqlBool>`((not (${mayBeCut}) and ${anyOf(indexedValues)}) or (${mayBeCut} and ${inRow}))`
  return { keys: attributeKeys(first.attribute, space, condition), exact: true, isRange: true }
}

function attributeKeys(attribute: string, space: SearchSpace, condition?: Condition): Keys {
  return sql`select distinct a.entry as pk from attributes as a where a.collection = ${space.collection} and a.name_key = ${nameKey(attribute)}${condition === undefined ? sql`` : sql` and ${condition}`}`
}

/**
 * True of the entry `e` exactly when the filter is. Unless it `drives`, no index of times is used for it: entries are found
 * by another way, and planners must not think otherwise.
 */
export function truthCondition(truth: Truth, space: SearchSpace, drives = true): Condition {
  switch (truth.kind) {
    case 'all':
    case 'any': {
      if (truth.parts.length === 0) return truth.kind === 'all' ? sql`1 = 1` : sql`1 = 0`
      const parts = truth.parts.map((part) => truthCondition(part, space, drives))
      return sql`(${sql.join(parts, truth.kind === 'all' ? sql` and ` : sql` or `)})`
    }
    case 'present':
    case 'absent': {
      const { attribute } = truth.test
      const own = ownValue(attribute, space) !== undefined || timeColumn(attribute) !== undefined
      if (own) return truth.kind === 'present' ? sql`1 = 1` : sql`1 = 0`
      return sql`${truth.kind === 'absent' ? sql`not ` : sql``}${someValue(attribute)}`
    }
    case 'match':
    case 'mismatch': {
      const { test } = truth
      const time = timeColumn(test.attribute)
      if (time !== undefined) {
        const passes = timeTest(test, drives ? time : sql`+${time}`)
        return truth.kind === 'match' ? passes : sql`not (${passes})`
      }
      checkText(test)
      const own = ownValue(test.attribute, space)
      const passes =
        own === undefined ? someValue(test.attribute, valueTest(test, attributeValues)) : valueTest(test, own)
      if (truth.kind === 'match') return passes
      return own === undefined ? sql`(${someValue(test.attribute)} and not ${passes})` : sql`not ${passes}`
    }
  }
}

function someValue(attribute: string, test?: Condition): Condition {
  return sql`exists (select 1 from attributes as a where a.entry = e.pk and a.name_key = ${nameKey(attribute)}${test === undefined ? sql`` : sql` and ${test}`})`
}

export function nameKey(attribute: string): string {
  assertStorable('filter', attribute)
  return foldKey(attribute)
}

function checkText(test: ValueFilter): void {
  const texts = test.kind === 'substring' ? [test.initial ?? '', ...test.any, test.final ?? ''] : [test.value]
  for (const text of texts) assertStorable('filter', text)
}
