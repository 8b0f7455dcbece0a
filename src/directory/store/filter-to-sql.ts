import sql, { empty, join, type Sql } from 'sql-template-tag'
import { afterPrefix, assertStorable, foldKey, indexKey, isLong, numberOf } from '#database/text-keys.ts'
import { timeAttribute, valueMillis } from '#identity/entry-times.ts'
import type { CompareFilter, Filter, SubstringFilter } from '#identity/filter/ast.ts'
import { isAlways, type Truth, truthOf, type ValueFilter } from '#identity/filter/rewrite-filter.ts'
import { GatewayError } from '#kernel/errors.ts'
import { finalSigma, foldPart, foldValue, sigma } from '#kernel/text/compare-texts.ts'

/** What is searched: the users or the groups of a directory. */
export interface SearchSpace {
  readonly collection: number
  /** The name that means an entry's own name in filters. */
  readonly nameAttribute: 'userID' | 'name'
}

/** When a filter is true; undefined if it always is. Throws BAD_REQUEST for one that is too large. */
export function restriction(filter: Filter | undefined): Truth | undefined {
  const truth = filter === undefined ? undefined : truthOf(filter)
  return truth === undefined || isAlways(truth) ? undefined : truth
}

/**
 * True for the entry `e` exactly if the filter is. Unless it `drives`, it keeps planners off the indexes of times,
 * because another index finds the entries.
 */
export function truthCondition(truth: Truth, space: SearchSpace, drives = true): Sql {
  switch (truth.kind) {
    case 'all':
    case 'any': {
      if (truth.parts.length === 0) return truth.kind === 'all' ? sql`1 = 1` : sql`1 = 0`
      const parts = truth.parts.map((part) => truthCondition(part, space, drives))
      return truth.kind === 'all' ? both(parts) : either(parts)
    }
    case 'present':
    case 'absent': {
      const { attribute } = truth.test
      const own = ownValue(attribute, space) !== undefined || timeColumn(attribute) !== undefined
      if (own) return truth.kind === 'present' ? sql`1 = 1` : sql`1 = 0`
      return truth.kind === 'present' ? someValue(attribute) : sql`not ${someValue(attribute)}`
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

const someValue = (attribute: string, test?: Sql): Sql =>
  sql`exists (select 1 from attributes as a where a.entry = e.pk and a.name_key = ${nameKey(attribute)}${and(test)})`

const both = (conditions: readonly Sql[]): Sql => sql`(${join(conditions, ' and ')})`
export const either = (conditions: readonly Sql[]): Sql => sql`(${join(conditions, ' or ')})`
export const and = (condition: Sql | undefined): Sql => (condition === undefined ? empty : sql` and ${condition}`)

/** A limit or offset. SQLite would prepare the statement again for each bare parameter in such a place. */
export const count = (value: number): Sql => sql`cast(${value} as bigint)`

export function nameKey(attribute: string): string {
  assertStorable('filter', attribute)
  return foldKey(attribute)
}

export function checkText(test: ValueFilter): void {
  const texts = test.kind === 'substring' ? [test.initial ?? '', ...test.any, test.final ?? ''] : [test.value]
  for (const text of texts) assertStorable('filter', text)
}

/** The columns with a value. */
export interface ValueSource {
  /** The folded value as it is indexed. */
  readonly key: Sql
  /** The whole folded value. */
  readonly folded: Sql
  readonly raw: Sql
  /** The value if it is a whole number, else null; undefined if it never is one. */
  readonly number: Sql | undefined
  /** The index has only the beginnings of long values. */
  readonly cut: boolean
}

export const attributeValues: ValueSource = {
  key: sql`a.value_key`,
  folded: sql`coalesce(a.long_key, a.value_key)`,
  raw: sql`a.value`,
  number: sql`a.number`,
  cut: true,
}
const entryName: ValueSource = {
  key: sql`e.key`,
  folded: sql`e.key`,
  raw: sql`e.name`,
  number: sql`e.number`,
  cut: false,
}
const entryId: ValueSource = { key: sql`e.id`, folded: sql`e.id`, raw: sql`e.id`, number: undefined, cut: false }

/** The entry's own name or id, which every entry has once; undefined for a stored attribute. */
export function ownValue(attribute: string, space: SearchSpace): ValueSource | undefined {
  const name = foldKey(attribute)
  if (name === foldKey(space.nameAttribute)) return entryName
  return name === 'id' ? entryId : undefined
}

/** The column of one of the entry's times; undefined for any other attribute. */
export function timeColumn(attribute: string): Sql | undefined {
  const name = timeAttribute(attribute)
  if (name === undefined) return undefined
  return name === 'meta.created' ? sql`e.created` : sql`e.modified`
}

const orderOperators = { greaterOrEqual: sql`>=`, lessOrEqual: sql`<=`, greater: sql`>`, less: sql`<` } as const
const timeOperators = { ...orderOperators, equal: sql`=`, approximate: sql`=` } as const

/** Throws BAD_REQUEST for a test that does not apply to times. */
export function timeTest(test: ValueFilter, column: Sql): Sql {
  const millis = test.kind === 'substring' ? undefined : valueMillis(test.value)
  if (test.kind === 'substring' || millis === undefined) {
    throw badFilter(`${test.attribute} is compared with a date and time such as 2026-01-31T08:00:00.000Z.`)
  }
  return sql`${column} ${timeOperators[test.kind]} ${millis}`
}

const badFilter = (publicText: string): GatewayError => new GatewayError('BAD_REQUEST', publicText, { publicText })

/** True for a value exactly if `evaluate` says so. Throws BAD_REQUEST for a substring that is too long. */
export function valueTest(test: ValueFilter, source: ValueSource): Sql {
  if (test.kind === 'substring') return substringTest(test, source)
  return test.kind === 'equal' || test.kind === 'approximate'
    ? equalTest(test, source)
    : orderTest(test, test.kind, source)
}

/**
 * A condition on the index key that holds for every value that passes the test; `exact` if it holds for no other.
 * Undefined if the index does not help.
 */
export function keyCondition(
  test: ValueFilter,
  source: Pick<ValueSource, 'key' | 'cut'>,
): { readonly condition: Sql; readonly exact: boolean } | undefined {
  const { caseExact = false } = test
  const cutKey = (text: string): string => (source.cut ? indexKey(foldKey(text)) : foldKey(text))
  switch (test.kind) {
    case 'equal':
    case 'approximate': {
      const exact = !caseExact && !(source.cut && isLong(foldKey(test.value)))
      return { condition: sql`${source.key} = ${cutKey(test.value)}`, exact }
    }
    case 'substring': {
      const { initial = '', any, final } = test
      const folded = foldPart(initial, false)
      // The form of a sigma in the key depends on what follows it, so the index helps up to there.
      const [known = ''] = folded.split(sigma, 1)
      if (known === '') return undefined
      const isWhole = known === folded && any.length === 0 && final === undefined
      const exact = !caseExact && isWhole && !(source.cut && isLong(folded))
      return { condition: startsWith(source.key, source.cut ? indexKey(known) : known), exact }
    }
    default: {
      if (caseExact || numberOf(test.value) !== null) return undefined
      const upwards = test.kind === 'greater' || test.kind === 'greaterOrEqual'
      const operator = orderOperators[upwards ? 'greaterOrEqual' : 'lessOrEqual']
      return { condition: sql`${source.key} ${operator} ${cutKey(test.value)}`, exact: false }
    }
  }
}

function equalTest(test: CompareFilter, source: ValueSource): Sql {
  const folded = foldKey(test.value)
  const conditions = [sql`${source.key} = ${source.cut ? indexKey(folded) : folded}`]
  if (source.cut && isLong(folded)) conditions.push(sql`${source.folded} = ${folded}`)
  if (test.caseExact === true) conditions.push(sql`${source.raw} = ${test.value}`)
  return both(conditions)
}

function orderTest(test: CompareFilter, kind: keyof typeof orderOperators, source: ValueSource): Sql {
  const operator = orderOperators[kind]
  const { caseExact = false } = test
  const text = sql`${caseExact ? source.raw : source.folded} ${operator} ${foldValue(test.value, caseExact)}`
  const number = numberOf(test.value)
  if (number === null || source.number === undefined) return text
  return sql`(case when ${source.number} is null then ${text} else ${source.number} ${operator} ${number} end)`
}

/** SQLite rejects a LIKE pattern of 50,000 bytes. */
const maxPatternBytes = 40_000

function substringTest(test: SubstringFilter, source: ValueSource): Sql {
  const { initial = '', any, final, caseExact = false } = test
  const byKey = keyCondition(test, source)
  if (byKey?.exact) return byKey.condition
  const literally = (text: string): string => foldPart(text, caseExact).replace(/[\\%_]/g, '\\$&')
  const pattern = [literally(initial), ...any.map(literally), literally(final ?? '')].join('%')
  if (Buffer.byteLength(pattern) > maxPatternBytes) throw badFilter('A substring in the filter is too long.')
  const folded = pattern.includes(sigma) ? sql`replace(${source.folded}, ${finalSigma}, ${sigma})` : source.folded
  const like = sql`${caseExact ? source.raw : folded} like ${pattern} escape '\\'`
  return byKey === undefined ? like : both([byKey.condition, like])
}

function startsWith(key: Sql, prefix: string): Sql {
  const end = afterPrefix(prefix)
  const from = sql`${key} >= ${prefix}`
  return end === undefined ? from : both([from, sql`${key} < ${end}`])
}
