import { expect, test } from 'vitest'
import type { Filter } from '#identity/filter/ast.ts'
import { isAlways, truthOf } from '#identity/filter/truth.ts'

const equal: Filter = { kind: 'equal', attribute: 'a', value: '1' }
const not = (filter: Filter): Filter => ({ kind: 'not', filter })

test('a negation goes down to the clauses, where absence is not a match', () => {
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

test('what is always true falls away, and what is never true stays', () => {
  const everything: Filter = { kind: 'and', filters: [] }
  expect(isAlways(truthOf(everything))).toBe(true)
  expect(isAlways(truthOf({ kind: 'or', filters: [] }))).toBe(false)
  expect(isAlways(truthOf(not({ kind: 'or', filters: [] })))).toBe(true)
  expect(truthOf({ kind: 'and', filters: [everything, equal] })).toEqual({ kind: 'match', test: equal })
})
