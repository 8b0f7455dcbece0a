import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { CompareFilter, SubstringFilter } from '#identity/filter/ast.ts'
import { finalSigma, foldPart, foldValue, sigma } from '#identity/filter/compare-values.ts'
import type { ValueFilter } from '#identity/filter/truth.ts'
import { GatewayError } from '#kernel/errors.ts'
import { afterPrefix, foldKey, indexKey, isLong, numberOf } from '#storage/client/text-keys.ts'

type Text = RawBuilder<string>
type Condition = RawBuilder<SqlBool>

/** The columns in which a value stands. */
export interface ValueSource {
  /** The folded value as it is indexed. */
  readonly key: Text
  /** The folded value as a whole. */
  readonly folded: Text
  readonly raw: Text
  /** The value where it is a whole number, else null; undefined where it never is one. */
  readonly number: RawBuilder<bigint | null> | undefined
  /** The index holds beginnings only of long values. */
  readonly cut: boolean
}

/** SQLite refuses a LIKE pattern of 50,000 bytes. */
const maxPatternBytes = 40_000

const operators = {
  greaterOrEqual: sql`>=`,
  lessOrEqual: sql`<=`,
  greater: sql`>`,
  less: sql`<`,
} as const

/** True of a value exactly when `evaluate` says so of it. Throws BAD_REQUEST for a substring that is too long. */
export function valueTest(test: ValueFilter, source: ValueSource): Condition {
  if (test.kind === 'substring') return substringTest(test, source)
  return test.kind === 'equal' || test.kind === 'approximate'
    ? equalTest(test, source)
    : orderTest(test, test.kind, source)
}

/**
 * A condition on the index key that holds of every value that passes the test, and whether it holds of no other one;
 * undefined when the index is of no help.
 */
export function keyCondition(
  test: ValueFilter,
  source: Pick<ValueSource, 'key' | 'cut'>,
): { readonly condition: Condition; readonly exact: boolean } | undefined {
  const { caseExact = false } = test
  const cutKey = (text: string): string => (source.cut ? indexKey(foldKey(text)) : foldKey(text))
  switch (test.kind) {
    case 'equal':
    case 'approximate': {
      const exact = !caseExact && !(source.cut && isLong(foldKey(test.value)))
      return { condition: sql<SqlBool>`${source.key} = ${cutKey(test.value)}`, exact }
    }
    case 'substring': {
      const { initial = '', any, final } = test
      const folded = foldPart(initial, false)
      // How that letter stands in the key depends on what follows it, so the index helps up to there.
      const [known = ''] = folded.split(sigma, 1)
      if (known === '') return undefined
      const isWhole = known === folded && any.length === 0 && final === undefined
      const exact = !caseExact && isWhole && !(source.cut && isLong(folded))
      return { condition: startsWith(source.key, source.cut ? indexKey(known) : known), exact }
    }
    default: {
      if (caseExact || numberOf(test.value) !== null) return undefined
      const upwards = test.kind === 'greater' || test.kind === 'greaterOrEqual'
      const operator = upwards ? operators.greaterOrEqual : operators.lessOrEqual
      return { condition: sql<SqlBool>`${source.key} ${operator} ${cutKey(test.value)}`, exact: false }
    }
  }
}

function equalTest(test: CompareFilter, source: ValueSource): Condition {
  const folded = foldKey(test.value)
  const conditions = [sql<SqlBool>`${source.key} = ${source.cut ? indexKey(folded) : folded}`]
  if (source.cut && isLong(folded)) conditions.push(sql`${source.folded} = ${folded}`)
  if (test.caseExact === true) conditions.push(sql`${source.raw} = ${test.value}`)
  return both(conditions)
}

function orderTest(test: CompareFilter, kind: keyof typeof operators, source: ValueSource): Condition {
  const operator = operators[kind]
  const { caseExact = false } = test
  const text = sql<SqlBool>`${caseExact ? source.raw : source.folded} ${operator} ${foldValue(test.value, caseExact)}`
  const number = numberOf(test.value)
  if (number === null || source.number === undefined) return text
  return sql<SqlBool>`(case when ${source.number} is null then ${text} else ${source.number} ${operator} ${number} end)`
}

function substringTest(test: SubstringFilter, source: ValueSource): Condition {
  const { initial = '', any, final, caseExact = false } = test
  const byKey = keyCondition(test, source)
  if (byKey?.exact) return byKey.condition
  const literally = (text: string): string => foldPart(text, caseExact).replace(/[\\%_]/g, '\\$&')
  const pattern = [literally(initial), ...any.map(literally), literally(final ?? '')].join('%')
  if (Buffer.byteLength(pattern) > maxPatternBytes) {
    const publicText = 'A substring in the filter is too long.'
    throw new GatewayError('BAD_REQUEST', publicText, { publicText })
  }
  const folded = pattern.includes(sigma)
    ? sql<string>`replace(${source.folded}, ${finalSigma}, ${sigma})`
    : source.folded
  const like = sql<SqlBool>`${caseExact ? source.raw : folded} like ${pattern} escape '\\'`
  return byKey === undefined ? like : both([byKey.condition, like])
}

function startsWith(key: Text, prefix: string): Condition {
  const end = afterPrefix(prefix)
  const from = sql<SqlBool>`${key} >= ${prefix}`
  return end === undefined ? from : both([from, sql`${key} < ${end}`])
}

const both = (conditions: readonly Condition[]): Condition => sql`(${sql.join(conditions, sql` and `)})`
