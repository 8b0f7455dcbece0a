import { describe, expect, onTestFinished, test } from 'vitest'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import {
  type BulkOperation,
  type BulkOutcome,
  deferReferences,
  pathReference,
  readBulkRequest,
  referencesIn,
  resolvePath,
  resolveReferences,
  runBulk,
} from './bulk.ts'

/** Creates the ids 1, 2, 3…; everything named `bad` fails. */
function service() {
  const done: BulkOperation[] = []
  let ids = 0
  const perform = async (operation: BulkOperation): Promise<BulkOutcome> => {
    done.push(operation)
    if (JSON.stringify(operation).includes('"bad"')) return { status: 400, response: { status: '400' } }
    if (operation.method !== 'POST') return { status: 200, location: operation.path, version: 'W/"2"' }
    const id = String(++ids)
    return { status: 201, id, location: `${operation.path}/${id}`, version: 'W/"1"' }
  }
  const run = async (operations: JsonValue, rest = {}, isStopped = () => false) => {
    const response = await runBulk(readBulkRequest({ Operations: operations, ...rest }), perform, isStopped)
    return response['Operations'] as JsonObject[]
  }
  return { run, done, lines: () => done.map(({ method, path, data }) => [method, path, data]) }
}

const post = (bulkId: string, data: JsonObject, path = '/Groups') => ({ method: 'POST', path, bulkId, data })
const statuses = (results: readonly JsonObject[]) => results.map(({ bulkId, status }) => [bulkId, status])

test('RFC 7644 3.7.2: a group refers to a user of the same request', async () => {
  const { run, lines } = service()
  const results = await run([
    post('qwerty', { userName: 'Alice' }, '/Users'),
    post('ytrewq', { displayName: 'Tour Guides', members: [{ type: 'User', value: 'bulkId:qwerty' }] }),
  ])
  expect(results).toEqual([
    { location: '/Users/1', method: 'POST', bulkId: 'qwerty', version: 'W/"1"', status: '201' },
    { location: '/Groups/2', method: 'POST', bulkId: 'ytrewq', version: 'W/"1"', status: '201' },
  ])
  expect(lines()[1]?.[2]).toEqual({ displayName: 'Tour Guides', members: [{ type: 'User', value: '1' }] })
})

test('referenced resources are created first; the response keeps the order of the request', async () => {
  const { run, lines } = service()
  const results = await run([
    { method: 'PATCH', path: '/Users/bulkId:u', data: { a: 1 } },
    post('g', { members: ['bulkId:u'] }),
    post('u', { userName: 'u' }, '/Users'),
  ])
  expect(lines().map(([method, path]) => `${method} ${path}`)).toEqual([
    'POST /Users',
    'PATCH /Users/1',
    'POST /Groups',
  ])
  expect(results.map(({ method, location }) => `${method} ${location}`)).toEqual([
    'PATCH /Users/1',
    'POST /Groups/2',
    'POST /Users/1',
  ])
})

describe('RFC 7644 3.7.1: circles', () => {
  const circle = [
    post('qwerty', { displayName: 'Group A', members: [{ type: 'Group', value: 'bulkId:ytrewq' }] }),
    post('ytrewq', { displayName: 'Group B', members: [{ type: 'Group', value: 'bulkId:qwerty' }] }),
  ]

  test('one is created without the reference and completed afterwards', async () => {
    const { run, lines } = service()
    expect(statuses(await run(circle))).toEqual([
      ['qwerty', '201'],
      ['ytrewq', '201'],
    ])
    expect(lines()).toEqual([
      ['POST', '/Groups', { displayName: 'Group B' }],
      ['POST', '/Groups', { displayName: 'Group A', members: [{ type: 'Group', value: '1' }] }],
      ['PATCH', '/Groups/1', { Operations: [{ op: 'add', path: 'members', value: [{ type: 'Group', value: '2' }] }] }],
    ])
  })

  test('the version is that of the completed resource', async () => {
    const { run } = service()
    expect((await run(circle)).map(({ version }) => version)).toEqual(['W/"1"', 'W/"2"'])
  })

  test('a resource that refers to itself', async () => {
    const { run, lines } = service()
    expect(statuses(await run([post('me', { manager: 'bulkId:me' }, '/Users')]))).toEqual([['me', '201']])
    expect(lines()).toEqual([
      ['POST', '/Users', {}],
      ['PATCH', '/Users/1', { Operations: [{ op: 'add', path: 'manager', value: '1' }] }],
    ])
  })

  test('three in a circle', async () => {
    const { run, done } = service()
    const results = await run(
      ['b', 'c', 'a'].map((next, i) => post(['a', 'b', 'c'][i] ?? '', { members: [`bulkId:${next}`] })),
    )
    expect(statuses(results)).toEqual([
      ['a', '201'],
      ['b', '201'],
      ['c', '201'],
    ])
    expect(done.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST', 'PATCH'])
  })

  test("if the other resource can't be created, the outcome is 409 with the location of the created one", async () => {
    const { run } = service()
    const results = await run([
      post('a', { displayName: 'bad', members: ['bulkId:b'] }),
      post('b', { members: ['bulkId:a'] }),
    ])
    expect(results).toMatchObject([
      { bulkId: 'a', status: '400' },
      { bulkId: 'b', status: '409', location: '/Groups/1', response: { status: '409' } },
    ])
    expect(results[1]?.['response']).not.toHaveProperty('scimType')
  })

  test("if the resource can't be completed, the outcome has the reason", async () => {
    const { run } = service()
    const results = await run([
      post('a', { members: ['bulkId:b'] }),
      post('b', { members: [{ value: 'bulkId:a', display: 'bad' }] }),
    ])
    expect(results).toMatchObject([
      { bulkId: 'a', status: '201' },
      { bulkId: 'b', status: '400', location: '/Groups/1', response: { status: '400' } },
    ])
  })
})

describe('errors', () => {
  test('an unknown bulkId is 400, and the other operations are performed', async () => {
    const { run } = service()
    expect(await run([post('a', { members: ['bulkId:none'] }), post('b', {})])).toMatchObject([
      { status: '400', response: { scimType: 'invalidValue' } },
      { status: '201' },
    ])
  })

  test('a reference to a resource that was not created is 409', async () => {
    const { run, done } = service()
    const results = await run([
      post('a', { userName: 'bad' }, '/Users'),
      post('g', { members: ['bulkId:a'] }),
      { method: 'DELETE', path: '/Users/bulkId:a' },
    ])
    expect(results.map(({ status }) => status)).toEqual(['400', '409', '409'])
    expect(done).toHaveLength(1)
  })

  test('failOnErrors stops, and operations that were not reached are not listed', async () => {
    const operations = [post('a', { n: 'bad' }), post('b', {}), post('c', { n: 'bad' }), post('d', {})]
    expect(statuses(await service().run(operations, { failOnErrors: 2 }))).toEqual([
      ['a', '400'],
      ['b', '201'],
      ['c', '400'],
    ])
    expect(await service().run(operations, { failOnErrors: 1 })).toHaveLength(1)
    expect(await service().run(operations, { failOnErrors: 0 })).toHaveLength(1)
    expect(await service().run(operations)).toHaveLength(4)
  })

  test('an operation that was stopped by an earlier one is not listed', async () => {
    const results = await service().run([post('g', { members: ['bulkId:u'] }), post('u', { n: 'bad' })], {
      failOnErrors: 1,
    })
    expect(statuses(results)).toEqual([['u', '400']])
  })

  test('a client that disconnects stops it', async () => {
    const { run, done } = service()
    expect(await run([post('a', {}), post('b', {})], {}, () => done.length > 0)).toHaveLength(1)
  })
})

test('a chain of a thousand', async () => {
  const { run, done } = service()
  const operations = Array.from({ length: 1000 }, (_, i) =>
    post(`${i}`, i === 999 ? {} : { members: [`bulkId:${i + 1}`] }),
  )
  expect((await run(operations)).every(({ status }) => status === '201')).toBe(true)
  expect(done).toHaveLength(1000)
})

test('all resources refer to each other', async () => {
  const { run } = service()
  const names = Array.from({ length: 60 }, (_, i) => `g${i}`)
  const results = await run(names.map((name) => post(name, { members: names.map((other) => `bulkId:${other}`) })))
  expect(results.every(({ status }) => status === '201')).toBe(true)
})

const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'

test('references are whole values, at any depth', () => {
  const value = { a: ['bulkId:x', { b: 'bulkId:y' }], c: 'see bulkId:z', 'bulkId:w': 1 }
  expect([...referencesIn(value)]).toEqual(['x', 'y'])
  const ids = new Map([['x', '1']])
  expect(resolveReferences(value, ids)).toEqual({ ...value, a: ['1', { b: 'bulkId:y' }] })
})

test("a key of JavaScript's own stays a key", () => {
  const value = JSON.parse('{"__proto__":{"a":"bulkId:x"}}')
  const resolved = resolveReferences(value, new Map([['x', '1']]))
  expect(JSON.stringify(resolved)).toBe('{"__proto__":{"a":"1"}}')
  expect(Object.getPrototypeOf(resolved)).toBe(Object.prototype)
})

test('a reference in a path', () => {
  expect(pathReference('/Users/bulkId:x')).toBe('x')
  expect(pathReference('/Users/bulkId%3Aa%20b')).toBe('a b')
  expect(pathReference('/Users/bulkId:%')).toBe('%')
  expect(pathReference('/Users/x')).toBeUndefined()
  expect(resolvePath('/Users/bulkId:x', 'a/b')).toBe('/Users/a%2Fb')
})

test('open references are added later: whole attributes, values of lists, parts of extensions', () => {
  const data = {
    displayName: 'A',
    members: [{ value: 'bulkId:open' }, { value: 'u1' }, { value: 'bulkId:known' }],
    [enterprise]: { department: 'D', manager: { value: 'bulkId:open' } },
    owner: { value: 'bulkId:open' },
  }
  expect(deferReferences(data, new Set(['open']))).toEqual({
    data: {
      displayName: 'A',
      members: [{ value: 'u1' }, { value: 'bulkId:known' }],
      [enterprise]: { department: 'D' },
    },
    operations: [
      { op: 'add', path: 'members', value: [{ value: 'bulkId:open' }] },
      { op: 'add', path: `${enterprise}:manager`, value: { value: 'bulkId:open' } },
      { op: 'add', path: 'owner', value: { value: 'bulkId:open' } },
    ],
  })
  expect(deferReferences(data, new Set())).toEqual({ data, operations: [] })
})

test('others get their turn between two operations, and the end of the request ends them', async () => {
  const { run, done } = service()
  let turns = 0
  const others = () => {
    turns++
    next = setImmediate(others)
  }
  let next = setImmediate(others)
  onTestFinished(() => clearImmediate(next))
  const results = await run(
    Array.from({ length: 500 }, () => ({ method: 'DELETE', path: '/Users/1' })),
    {},
    () => turns > 3,
  )
  expect(turns).toBeGreaterThan(3)
  expect(done.length).toBeLessThan(500)
  expect(results).toHaveLength(done.length)
})
