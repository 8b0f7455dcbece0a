import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import type { JsonObject } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { printScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute } from '#protocols/scim/schema/schema.ts'
import { userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { sampled } from '#testing/hostile/sample.ts'
import { type FilterName, type Narrowed, narrow, slotName } from './filter-to-scim.ts'
import { ResourceMapping } from './resource-mapping.ts'

const schema = new ResourceSchema(userSchema, [
  {
    id: 'urn:x:Badge',
    name: 'Badge',
    description: '',
    attributes: [attribute('badge', '', { type: 'integer' }), attribute('code', '', { caseExact: true })],
  },
])
const mapping = new ResourceMapping(schema, new Set(['schemas', 'id', 'meta', 'userName', 'password', 'groups']), [])
const nameOf = (name: string): FilterName => slotName(name, mapping)

const words = ['a', 'A', 'ab', 'Ab', 'b', 'x"y', '', '1', '01', 'true', 'TRUE', 'K', 'ß']
const word = fc.constantFrom(...words)
const names = [
  'title',
  'name.givenName',
  'emails.value',
  'emails',
  'active',
  'nobody',
  'urn:x:Badge:badge',
  'urn:x:Badge:code',
]
const named = fc.constantFrom(...names)
const caseExact = fc.constantFrom({}, { caseExact: true })

const leaf: fc.Arbitrary<Filter> = fc.oneof(
  named.map((name): Filter => ({ kind: 'present', attribute: name })),
  fc
    .tuple(fc.constantFrom('equal', 'approximate', 'greater', 'lessOrEqual'), named, word, caseExact)
    .map(([kind, name, value, exact]): Filter => ({ kind, attribute: name, value, ...exact }) as Filter),
  fc.tuple(named, word, fc.array(word, { maxLength: 2 }), word, caseExact).map(
    ([name, initial, any, final, exact]): Filter => ({
      kind: 'substring',
      attribute: name,
      initial,
      any,
      final,
      ...exact,
    }),
  ),
)
const { filter } = fc.letrec<{ filter: Filter }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc.record({
      kind: fc.constantFrom('and' as const, 'or' as const),
      filters: fc.array(tie('filter'), { maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant('not' as const), filter: tie('filter') }),
  ),
}))

const maybe = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined })
const resource: fc.Arbitrary<JsonObject> = fc
  .record({
    title: maybe(word),
    givenName: maybe(word),
    emails: fc.array(fc.record({ value: word, type: fc.constantFrom('work', 'home') }), { maxLength: 2 }),
    active: maybe(fc.boolean()),
    badge: maybe(fc.constantFrom(1, 2)),
    code: maybe(word),
  })
  .map(({ title, givenName, emails, active, badge, code }) => {
    const text = JSON.stringify({ title, active, name: { givenName }, emails, 'urn:x:Badge': { badge, code } })
    return mapping.normalize(JSON.parse(text), () => {})
  })

const isAsked = (narrowed: Narrowed, one: JsonObject): boolean =>
  narrowed.kind === 'some' ? evaluateFilter(narrowed.filter, one) : narrowed.kind === 'all'

test("the server's filter never finds less than the matches, and exactly the matches if it is exact", () => {
  let exact = 0
  const numRuns = sampled(1000, 5000)
  fc.assert(
    fc.property(filter, resource, (one, held) => {
      const narrowed = narrow(one, nameOf)
      const wanted = matches(one, mapping.attributes(held))
      const asked = isAsked(narrowed, held)
      if (narrowed.exact) {
        exact++
        expect(asked).toBe(wanted)
      } else if (wanted) {
        expect(asked).toBe(true)
      }
    }),
    { numRuns },
  )
  expect(exact).toBeGreaterThan(numRuns / 5)
}, 30_000)

const text = (one: Filter): string => {
  const narrowed = narrow(one, nameOf)
  return narrowed.kind === 'some' ? printScimFilter(narrowed.filter) : narrowed.kind
}

test('values are quoted, never concatenated', () => {
  expect(text({ kind: 'equal', attribute: 'title', value: '" or userName pr or title eq "' })).toBe(
    'title eq "\\" or userName pr or title eq \\""',
  )
})

test('a long value is searched by its beginning, never by half a character', () => {
  const value = '🎉'.repeat(20_000)
  const narrowed = narrow({ kind: 'equal', attribute: 'title', value }, nameOf)
  expect(narrowed).toMatchObject({ kind: 'some', exact: false, filter: { operator: 'sw' } })
  expect(text({ kind: 'equal', attribute: 'title', value })).toMatch(/^title sw "(🎉)+"$/u)
})

test('a value that no server can store matches no user', () => {
  for (const value of ['a\0b', '\ud800']) expect(text({ kind: 'equal', attribute: 'title', value })).toBe('none')
})
