import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '#kernel/json.ts'
import { parseSort, sortResources, writeCursor } from '#protocols/scim/lists.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { enterpriseUserSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { openStack } from '#testing/scim/scim-stack.ts'
import scimGateway from './scim-gateway.ts'

const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const schema = new ResourceSchema(userSchema, [enterpriseUserSchema])
const words = ['Zoe', 'anna', 'Anna2', 'bert', 'BERTA', 'émile', 'zoe2', '_x', '10', '9', 'Ünal', '名前']

let stack: Awaited<ReturnType<typeof openStack>>
let all: JsonObject[]
beforeAll(async () => {
  stack = await openStack(scimGateway)
  for (const [i, userName] of words.entries()) {
    const title = i % 3 === 0 ? {} : { title: words[(i * 5) % words.length] ?? '' }
    const answer = await stack.send('POST', '/Users', {
      userName,
      active: i % 2 === 0,
      externalId: `${userName}-x`,
      name: { familyName: (words[(i * 7) % words.length] ?? '').toUpperCase() },
      emails: [{ value: `${i}@a` }, { value: `${99 - i}@b`, primary: i % 2 === 0 }],
      ...title,
    })
    expect(answer.status).toBe(201)
  }
  all = (await stack.send('GET', '/Users')).body['Resources'] as JsonObject[]
})
afterAll(() => stack.close())

const ids = (resources: readonly JsonObject[]): unknown[] => resources.map(({ id }) => id)

async function pages(query: string, count: number): Promise<JsonObject[]> {
  const found: JsonObject[] = []
  for (let cursor: unknown = ''; cursor !== undefined; ) {
    const { status, body } = await stack.send('GET', `/Users?${query}&count=${count}&cursor=${cursor}`)
    expect([status, body['totalResults']]).toEqual([200, words.length])
    found.push(...(body['Resources'] as JsonObject[]))
    cursor = body['nextCursor']
  }
  return found
}

describe('the store sorts as the gateway would', () => {
  test.each(
    [
      'userName',
      'id',
      'title',
      'externalId',
      'name.familyName',
      'active',
      'emails',
      'meta.created',
      'meta.lastModified',
    ].flatMap((name) => [[name, 'ascending'] as const, [name, 'descending'] as const]),
  )('%s %s', async (sortBy, sortOrder) => {
    const query = new URLSearchParams({ sortBy, sortOrder })
    const sort = parseSort(query, schema)
    if (sort === undefined) throw new Error('no order')
    const key = (resource: JsonObject) => JSON.stringify([resource[sort.path.attribute.name] ?? null]).toLowerCase()
    const wanted = sortResources(all, sort)
    const { body } = await stack.send('GET', `/Users?${query}`)
    // Resources with the same value may come in either order.
    expect((body['Resources'] as JsonObject[]).map(key)).toEqual(wanted.map(key))
    expect(ids(await pages(String(query), 5))).toEqual(ids(body['Resources'] as JsonObject[]))
  })
})

describe('cursor', () => {
  test('returns every user once, in the order of the list', async () => {
    expect(ids(await pages('', 1))).toEqual(ids(all))
    expect(ids(await pages('', 12))).toEqual(ids(all))
  })

  test('continues while resources are added and deleted', async () => {
    const { body } = await stack.send('GET', '/Users?sortBy=userName&count=4&cursor')
    const created = await stack.send('POST', '/Users', { userName: '!first' })
    const next = await stack.send('GET', `/Users?sortBy=userName&count=4&cursor=${body['nextCursor']}`)
    const wanted = (await stack.send('GET', '/Users?sortBy=userName&startIndex=6&count=4')).body['Resources']
    expect(ids(next.body['Resources'] as JsonObject[])).toEqual(ids(wanted as JsonObject[]))
    expect((await stack.send('DELETE', `/Users/${created.body['id']}`)).status).toBe(204)
  })

  test.each([
    's',
    'sx',
    's{}',
    's[]',
    's\0',
    's"',
    'sAAAA',
    'o',
    'o-1',
    'ox',
    'r',
    'rUser x',
    '',
    'zz',
    `s${'A'.repeat(4000)}`,
  ])('rejects a position that no page returned: %j', async (position) => {
    const cursor = writeCursor(['scim', '/api/scim', 'User', '', '', ''], position)
    const { status, body } = await stack.send('GET', `/Users?cursor=${cursor}`)
    expect([status, body['scimType']]).toEqual([400, 'invalidCursor'])
  })
})

test('a cycle of managers in one bulk request (RFC 7644 3.7.1)', async () => {
  const user = (bulkId: string, manager: string) => ({
    method: 'POST',
    path: '/Users',
    bulkId,
    data: { userName: `circle-${bulkId}`, [enterprise]: { department: 'D', manager: { value: `bulkId:${manager}` } } },
  })
  const { body } = await stack.send('POST', '/Bulk', { Operations: [user('a', 'b'), user('b', 'c'), user('c', 'a')] })
  const results = body['Operations'] as JsonObject[]
  expect(results.map(({ status }) => status)).toEqual(['201', '201', '201'])
  const found = await Promise.all(
    results.map(async ({ location, version }) => {
      const { body, headers } = await stack.send('GET', `/Users/${String(location).split('/').at(-1)}`)
      expect(headers['etag']).toBe(version)
      return body
    }),
  )
  const managers = found.map((resource) => ((resource[enterprise] as JsonObject)['manager'] as JsonObject)['value'])
  expect(managers).toEqual([found[1]?.['id'], found[2]?.['id'], found[0]?.['id']])
})
