import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { filterAttributes, isAlways, mapFilter, narrowFilter, truthOf } from '#identity/filter/rewrite-filter.ts'
import { sampled } from '#testing/hostile/sample.ts'

const attribute = fc.constantFrom('a', 'b')
const value = fc.constantFrom('x', 'X', 'xy', '1')
const leaf: fc.Arbitrary<Filter> = fc.oneof(
  fc.record({ kind: fc.constant('present' as const), attribute }),
  fc.record({
    kind: fc.constantFrom('equal', 'approximate', 'greaterOrEqual', 'lessOrEqual', 'greater', 'less'),
    attribute,
    value,
    caseExact: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('substring' as const), attribute, any: fc.array(value, { maxLength: 2 }) }),
)
const { filter } = fc.letrec<{ filter: Filter }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.record({ kind: fc.constantFrom('and', 'or'), filters: fc.array(tie('filter'), { maxLength: 3 }) }),
    fc.record({ kind: fc.constant('not' as const), filter: tie('filter') }),
  ),
}))
const values = fc.array(value, { maxLength: 2 })
const entry = fc.record({ a: values, b: values }).map((all) => Attributes.from(all))

test('the narrow filter matches everything that the filter matches, and negates only presence', () => {
  fc.assert(
    fc.property(filter, entry, (whole, one) => {
      const narrow = narrowFilter(whole)
      if (matches(whole, one)) expect(matches(narrow, one)).toBe(true)
      const negated = JSON.stringify(narrow).match(/"kind":"not","filter":\{"kind":"(\w+)"/g) ?? []
      expect(negated.every((text) => text.endsWith('"present"'))).toBe(true)
    }),
    { numRuns: sampled(500, 2000) },
  )
})

test('returns the attributes of a filter, and the same filter on other attributes', () => {
  const given: Filter = {
    kind: 'or',
    filters: [
      { kind: 'not', filter: { kind: 'equal', attribute: 'Mail', value: 'x' } },
      { kind: 'present', attribute: 'uid' },
    ],
  }
  expect([...filterAttributes(given)]).toEqual(['mail', 'uid'])
  expect(mapFilter(given, (part) => ({ ...part, attribute: `${part.attribute}2` }))).toEqual({
    kind: 'or',
    filters: [
      { kind: 'not', filter: { kind: 'equal', attribute: 'Mail2', value: 'x' } },
      { kind: 'present', attribute: 'uid2' },
    ],
  })
})

const equal: Filter = { kind: 'equal', attribute: 'a', value: '1' }
const not = (filter: Filter): Filter => ({ kind: 'not', filter })

test('a negation moves down to the clauses, where absence is not a match', () => {
  expect(truthOf(not(equal))).toEqual({ kind: 'mismatch', test: equal })
  expect(truthOf(not(not(equal)))).toEqual({ kind: 'match', test: equal })
  expect(truthOf(not({ kind: 'and', filters: [equal, not(equal)] }))).toEqual({
    kind: 'any',
    parts: [
      { kind: 'mismatch', test: equal },
      { kind: 'match', test: equal },
    ],
  })
})

test('clauses that are always true are removed, and clauses that are never true stay', () => {
  const everything: Filter = { kind: 'and', filters: [] }
  expect(isAlways(truthOf(everything))).toBe(true)
  expect(isAlways(truthOf({ kind: 'or', filters: [] }))).toBe(false)
  expect(isAlways(truthOf(not({ kind: 'or', filters: [] })))).toBe(true)
  expect(truthOf({ kind: 'and', filters: [everything, equal] })).toEqual({ kind: 'match', test: equal })
})
