import { describe, expect, test } from 'vitest'
import type { JsonObject } from '#kernel/json.ts'
import { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { parseSort, sortResources } from '#protocols/scim/sort.ts'
import { enterpriseUserSchema, userSchema } from '#protocols/scim/standard-schemas.ts'

const schema = new ResourceSchema(userSchema, [enterpriseUserSchema])
const parse = (query: string) => parseSort(new URLSearchParams(query), schema)

function sorted(query: string, resources: readonly JsonObject[]): unknown[] {
  const sort = parse(query)
  if (sort === undefined) throw new Error('no order')
  return sortResources(resources, sort).map(({ id }) => id)
}

describe('sortBy and sortOrder (RFC 7644 3.4.2.3)', () => {
  test('names in any case, with a URN or without, ascending by default', () => {
    expect(parse('sortBy=USERNAME')).toMatchObject({ path: { attribute: { name: 'userName' } }, descending: false })
    expect(parse('sortBy=name.familyName&sortOrder=Descending')).toMatchObject({
      path: { sub: { name: 'familyName' } },
      descending: true,
    })
    const urn = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
    expect(parse(`sortBy=${urn}:department`)).toMatchObject({ path: { extension: urn } })
    expect(parse('sortOrder=ascending')).toBeUndefined()
    expect(parse('sortBy=')).toBeUndefined()
  })

  test.each([
    'sortBy=nothing',
    'sortBy=__proto__',
    'sortBy=name',
    'sortBy=meta',
    'sortBy=password',
    'sortBy=emails[type eq "work"]',
    'sortBy=urn:ietf:params:scim:schemas:core:2.0:User',
    'sortBy=userName&sortOrder=up',
    'sortOrder=',
  ])('%s is refused', (query) => {
    expect(() => parse(query)).toThrow(expect.objectContaining({ status: 400, keyword: 'invalidValue' }))
  })
})

describe('order', () => {
  const people = [
    { id: 'b', userName: 'Bob', active: true, meta: { created: '2026-01-01T12:00:00+02:00' } },
    { id: 'none' },
    { id: 'a', userName: 'alice', active: false, meta: { created: '2026-01-01T11:00:00Z' } },
    { id: 'c', userName: 'CAROL', meta: { created: 'never' } },
  ]

  test('letter case counts only if the schema says so, and only between equal names; resources without a value are last', () => {
    expect(sorted('sortBy=userName', people)).toEqual(['a', 'b', 'c', 'none'])
    expect(sorted('sortBy=id', [{ id: 'b' }, { id: 'B' }, { id: 'a' }, { id: 'C' }])).toEqual(['a', 'B', 'b', 'C'])
  })

  test('in descending order resources without a value are first', () => {
    expect(sorted('sortBy=userName&sortOrder=descending', people)).toEqual(['none', 'c', 'b', 'a'])
  })

  test('booleans and moments by their type; equals stay in place', () => {
    expect(sorted('sortBy=active', people)).toEqual(['a', 'b', 'none', 'c'])
    expect(sorted('sortBy=meta.created', people)).toEqual(['b', 'a', 'none', 'c'])
  })

  test('of several values the primary one counts, else the first', () => {
    const people = [
      {
        id: '1',
        emails: [
          { value: 'a@x', type: 'home' },
          { value: 'z@x', primary: true, type: 'work' },
        ],
      },
      { id: '2', emails: [{ value: 'm@x', type: 'work' }, { value: 'b@x' }] },
      { id: '3', emails: [] },
    ]
    expect(sorted('sortBy=emails', people)).toEqual(['2', '1', '3'])
    expect(sorted('sortBy=emails.value', people)).toEqual(['2', '1', '3'])
    expect(sorted('sortBy=emails.type&sortOrder=descending', people)).toEqual(['3', '1', '2'])
  })
})
