import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import {
  listResponse,
  maxCount,
  maxCursorLength,
  parsePage,
  parseSort,
  readCursor,
  readSearchRequest,
  searchSchema,
  sortResources,
  writeCursor,
} from '#protocols/scim/lists.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { enterpriseUserSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'

const page = (query: string) => parsePage(new URLSearchParams(query))

describe('by index (RFC 7644 3.4.2.4)', () => {
  test.each([
    ['', 1, 100],
    ['startIndex=0&count=0', 1, 0],
    ['startIndex=-5&count=-1', 1, 0],
    ['startIndex=%2B3&count=100000', 3, maxCount],
    ['startIndex=&count=', 1, 100],
  ])('%s', (query, startIndex, count) => {
    expect(page(query)).toEqual({ kind: 'index', startIndex, count })
  })

  test.each(['startIndex=x', 'count=1.5', 'count=0x10', 'startIndex=9999999999999999'])('%s is rejected', (query) => {
    expect(() => page(query)).toThrow(expect.objectContaining({ keyword: 'invalidValue' }))
  })
})

describe('by cursor (RFC 9865 2)', () => {
  test('an empty cursor means the first page, whether it is written with = or not', () => {
    expect(page('cursor&count=10')).toEqual({ kind: 'cursor', cursor: '', count: 10 })
    expect(page('cursor=')).toEqual({ kind: 'cursor', cursor: '', count: 100 })
    expect(page('cursor=VZUTiyhEQJ94IR')).toEqual({ kind: 'cursor', cursor: 'VZUTiyhEQJ94IR', count: 100 })
  })

  test.each(['0', '-1', 'ten', '1.5'])('count=%s is invalidCount', (count) => {
    expect(() => page(`cursor&count=${count}`)).toThrow(
      expect.objectContaining({ status: 400, keyword: 'invalidCount' }),
    )
  })

  test('a count above the maximum means the maximum, as maxPageSize is defined', () => {
    expect(page('cursor&count=5000')).toMatchObject({ count: maxCount })
  })

  test("cursor and startIndex can't be combined", () => {
    expect(() => page('cursor&startIndex=1')).toThrow(expect.objectContaining({ keyword: 'invalidValue' }))
  })
})

const scope = ['/scim', 'User', 'active eq true', '', '']
const refused = expect.objectContaining({ status: 400, keyword: 'invalidCursor' })

test('survives encoding, in unreserved characters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (position) => {
      const cursor = writeCursor(scope, position)
      expect(cursor).toMatch(/^[A-Za-z0-9._~-]+$/)
      expect(readCursor(scope, cursor)).toBe(position)
    }),
  )
})

test('a cursor is not valid in another query', () => {
  const cursor = writeCursor(scope, 'p1')
  for (let i = 0; i < scope.length; i++) {
    expect(() => readCursor(scope.with(i, 'other'), cursor)).toThrow(refused)
  }
  // The parts are distinct, not joined.
  expect(() => readCursor(['/sci', 'mUser', ...scope.slice(2)], cursor)).toThrow(refused)
})

test('anything else is rejected', () => {
  const cursor = writeCursor(scope, 'p1')
  for (const text of ['x', `${cursor}=`, `${cursor} `, cursor.slice(1), '%', 'é', 'A'.repeat(maxCursorLength + 1)]) {
    expect(() => readCursor(scope, text)).toThrow(refused)
  }
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(() => readCursor(scope, text)).toThrow(refused)
    }),
  )
})

test('a position that is not UTF-8 is rejected', () => {
  const bytes = Buffer.concat([Buffer.from(writeCursor(scope, ''), 'base64url'), Buffer.from([0xff, 0xfe])])
  expect(() => readCursor(scope, bytes.toString('base64url'))).toThrow(refused)
})

test('numbers are numbers, and the page has its start', () => {
  expect(listResponse([{ id: 'a' }], 7, { startIndex: 3 })).toEqual({
    schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
    totalResults: 7,
    startIndex: 3,
    itemsPerPage: 1,
    Resources: [{ id: 'a' }],
  })
})

test('a page by cursor has no index, and the last one no next cursor', () => {
  expect(listResponse([], 7, { nextCursor: 'x' })).toMatchObject({ totalResults: 7, nextCursor: 'x' })
  expect(Object.keys(listResponse([], 7, { nextCursor: undefined }))).toEqual([
    'schemas',
    'totalResults',
    'itemsPerPage',
    'Resources',
  ])
})

test('RFC 7644 3.4.3: the example becomes the query that a GET would have', () => {
  const query = readSearchRequest({
    schemas: [searchSchema],
    attributes: ['displayName', 'userName'],
    filter: 'displayName sw "smith"',
    startIndex: 1,
    count: 10,
  })
  expect(Object.fromEntries(query)).toEqual({
    attributes: 'displayName,userName',
    filter: 'displayName sw "smith"',
    startIndex: '1',
    count: '10',
  })
})

test('RFC 9865 3: an empty cursor stays empty', () => {
  expect(readSearchRequest({ schemas: [searchSchema], cursor: '', count: 10 }).get('cursor')).toBe('')
})

test('letter case, null and unknown members do not count', () => {
  const query = readSearchRequest({ SortBY: 'userName', sortOrder: null, attributes: [], domain: 'x', __proto__: {} })
  expect(Object.fromEntries(query)).toEqual({ sortBy: 'userName' })
})

test.each<[JsonValue, string]>([
  [[], 'invalidSyntax'],
  ['x', 'invalidSyntax'],
  [{ schemas: 'x' }, 'invalidSyntax'],
  [{ schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'] }, 'invalidSyntax'],
  [{ filter: 1 }, 'invalidValue'],
  [{ filter: ['a'] }, 'invalidValue'],
  [{ attributes: 'userName' }, 'invalidValue'],
  [{ attributes: [1] }, 'invalidValue'],
  [{ count: '10' }, 'invalidValue'],
  [{ count: 1.5 }, 'invalidValue'],
  [{ startIndex: 1e300 }, 'invalidValue'],
  [{ cursor: 7 }, 'invalidValue'],
])('%j is %s', (body, keyword) => {
  expect(() => readSearchRequest(body)).toThrow(expect.objectContaining({ status: 400, keyword }))
})

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
  ])('%s is rejected', (query) => {
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

  test('texts are in the order of code points, not of UTF-16, and an empty one is the first', () => {
    const names = ['😀', '\ufb01', 'z', 'É', '']
    expect(
      sorted(
        'sortBy=userName',
        names.map((userName) => ({ id: userName, userName })),
      ),
    ).toEqual(['', 'z', 'É', '\ufb01', '😀'])
  })

  test('in descending order resources without a value are first', () => {
    expect(sorted('sortBy=userName&sortOrder=descending', people)).toEqual(['none', 'c', 'b', 'a'])
  })

  test('booleans and times by their type; equal resources keep their order', () => {
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
