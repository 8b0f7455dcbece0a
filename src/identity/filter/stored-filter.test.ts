import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Filter } from '#identity/filter/ast.ts'
import { restoreFilter, storeFilter } from '#identity/filter/stored-filter.ts'

const text = fc.string({ unit: 'binary', maxLength: 5 })
const kind = fc.constantFrom('equal', 'approximate', 'greaterOrEqual', 'lessOrEqual', 'greater', 'less')
const exact = { caseExact: fc.boolean() }
const { filter } = fc.letrec<{ filter: Filter }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 4 },
    fc.record({ kind: fc.constant('present' as const), attribute: text }),
    fc.record({ kind, attribute: text, value: text, ...exact }, { requiredKeys: ['kind', 'attribute', 'value'] }),
    fc.record(
      {
        kind: fc.constant('substring' as const),
        attribute: text,
        any: fc.array(text),
        initial: text,
        final: text,
        ...exact,
      },
      { requiredKeys: ['kind', 'attribute', 'any'] },
    ),
    fc.record({
      kind: fc.constantFrom('and' as const, 'or' as const),
      filters: fc.array(tie('filter'), { maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant('not' as const), filter: tie('filter') }),
  ) as fc.Arbitrary<Filter>,
}))

test('every filter survives storing', () => {
  fc.assert(
    fc.property(filter, (one) => {
      expect(restoreFilter(storeFilter(one))).toEqual(one)
    }),
  )
})

test.each([
  '',
  '(uid=ada)',
  'null',
  '[]',
  '{}',
  '{"kind":"none","attribute":"a","value":"b"}',
  '{"kind":"equal","attribute":"a"}',
  '{"kind":"equal","attribute":1,"value":"b"}',
  '{"kind":"constructor","attribute":"a","value":"b"}',
  '{"kind":"substring","attribute":"a","any":[1]}',
  '{"kind":"and"}',
  '{"kind":"or","filters":[{"kind":"equal"}]}',
  '{"kind":"not"}',
])('%s is not a stored filter', (stored) => expect(restoreFilter(stored)).toBeUndefined())

test('a filter nested deeper than any stored one is not a stored filter', () => {
  const deep = (levels: number): string =>
    `${'{"kind":"not","filter":'.repeat(levels)}{"kind":"present","attribute":"a"}${'}'.repeat(levels)}`
  expect(restoreFilter(deep(100))).toBeDefined()
  expect(restoreFilter(deep(101))).toBeUndefined()
})
