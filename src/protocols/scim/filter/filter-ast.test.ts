import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type CompareOperator, printScimFilter, type ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { type AttributePath, internalName, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { enterpriseUserSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'

const schema = new ResourceSchema(userSchema, [enterpriseUserSchema])

function path(name: string): AttributePath {
  const { attribute, sub, extension } = schema.resolveAttribute(name, true) ?? {}
  if (attribute === undefined) throw new Error(name)
  return { attribute, ...(extension === undefined ? {} : { extension }), ...(sub === undefined ? {} : { sub }) }
}

const names = [
  ...['userName', 'title', 'name.givenName', 'emails.value', 'externalId'],
  'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department',
  'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.value',
]
const operators: CompareOperator[] = ['eq', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le']
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom(
    '" or userName pr or title eq "',
    '\\',
    '\\"',
    '\n\t',
    ') or (',
    '"',
    'true',
    'null',
    '\u2028',
    '[',
    ']',
  ),
)
const leaf: fc.Arbitrary<ScimFilter> = fc.oneof(
  fc.record({ kind: fc.constant('present' as const), path: fc.constantFrom(...names).map(path) }),
  fc.record({
    kind: fc.constant('compare' as const),
    operator: fc.constantFrom(...operators),
    path: fc.constantFrom(...names).map(path),
    value: text.filter((value) => value.isWellFormed() && !value.includes('\0')),
  }),
  fc.record({
    kind: fc.constant('compare' as const),
    operator: fc.constantFrom('eq' as const, 'ne' as const),
    path: fc.constant(path('active')),
    value: fc.boolean(),
  }),
)
const { filter } = fc.letrec<{ filter: ScimFilter }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    fc.record({
      kind: fc.constantFrom('and' as const, 'or' as const),
      filters: fc.array(tie('filter'), { minLength: 2, maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant('not' as const), filter: tie('filter') }),
  ),
}))

/** `a and (b and c)` and `a and b and c` are the same; the parser may return either. */
function flat(one: ScimFilter): unknown {
  if (one.kind === 'and' || one.kind === 'or') {
    return {
      kind: one.kind,
      filters: one.filters.flatMap((part) => (part.kind === one.kind ? parts(part) : [flat(part)])),
    }
  }
  if (one.kind === 'not') return { kind: 'not', filter: flat(one.filter) }
  return one.kind === 'present' || one.kind === 'compare' ? { ...one, path: internalName(one.path) } : one
}
const parts = (one: ScimFilter): unknown[] => (flat(one) as { filters: unknown[] }).filters

test('a printed filter parses to the same filter', () => {
  fc.assert(
    fc.property(filter, (one) => {
      const printed = printScimFilter(one)
      fc.pre(printed.length < 4000)
      expect(flat(parseFilter(printed, schema, { strict: true }))).toEqual(flat(one))
    }),
    { numRuns: 500 },
  )
})

test('elements, and lists of nothing', () => {
  const of = path('emails')
  const type = schema.subAttribute(of.attribute, 'type')
  if (type === undefined) throw new Error('no type')
  const inner: ScimFilter = { kind: 'compare', operator: 'eq', path: { attribute: type }, value: 'wo"rk' }
  expect(printScimFilter({ kind: 'element', of, filter: inner })).toBe('emails[type eq "wo\\"rk"]')
  expect(() => printScimFilter({ kind: 'or', filters: [] })).toThrow(TypeError)
})
