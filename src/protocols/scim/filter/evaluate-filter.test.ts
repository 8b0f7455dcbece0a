import { expect, test } from 'vitest'
import { evaluateFilter, never, settleFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { groupSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'

const schema = new ResourceSchema(userSchema, [groupSchema])

const settle = (text: string) =>
  settleFilter(
    parseFilter(text, schema),
    ({ attribute, extension }, sub) => extension !== undefined || (attribute.name === 'meta' && sub === 'resourceType'),
    { meta: { resourceType: 'User' } },
  )

test.each([
  'members pr',
  'members eq "x"',
  'members[value eq "x"]',
  'meta.resourceType eq "Group"',
  'userName eq "a" and members pr',
  'not (meta.resourceType eq "User")',
  'members ne null',
])('%s is true of no user', (text) => expect(settle(text)).toBe(never))

test.each(['members ne "x"', 'members eq null', 'not (members pr)', 'userName pr or meta.resourceType eq "User"'])(
  '%s is true of every user',
  (text) => expect(settle(text)).toBeUndefined(),
)

test('conditions whose outcome is unknown stay', () => {
  const kept = parseFilter('userName eq "a"', schema)
  expect(settle('userName eq "a" or members pr')).toEqual(kept)
  expect(settle('meta.resourceType eq "User" and userName eq "a"')).toEqual(kept)
  expect(settle('not (userName eq "a" or members pr)')).toEqual({ kind: 'not', filter: kept })
  const both = parseFilter('userName eq "a" and title pr', schema)
  expect(settle('userName eq "a" and title pr and not (members pr)')).toEqual(both)
})

test.each([
  ['ge', '\ufb01', '😀', false],
  ['lt', '\ufb01', '😀', true],
  ['gt', '😀', '\ufb01', true],
  ['co', 'ΟΔΟΣΑ', 'ΟΔΟΣ', true],
  ['eq', 'ΟΔΟΣ', 'οδος', true],
  ['eq', 'ΟΔΟΣ', 'οδοσ', false],
])('%s compares code points, and parts of texts with one form of sigma: %s, %s', (operator, title, value, expected) => {
  const filter = parseFilter(`title ${operator} ${JSON.stringify(value)}`, schema)
  expect(evaluateFilter(filter, { title })).toBe(expected)
})
