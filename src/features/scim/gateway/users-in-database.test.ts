import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { createGroup, createUser, joinGroup } from '#testing/databases/directory-writes.ts'
import { base } from '#testing/scim/scim-gateway-fixture.ts'
import { builtInParams, openStack } from '#testing/scim/scim-stack.ts'
import scimGateway from './scim-gateway.ts'

let stack: Awaited<ReturnType<typeof openStack>>
beforeAll(async () => {
  stack = await openStack(scimGateway)
})
afterAll(() => stack.close())

const patchOp = (...operations: JsonValue[]): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})
const replace = (path: string, value: JsonValue): JsonObject => patchOp({ op: 'replace', path, value })

let next = 1
const unique = (): string => `person${next++}`

async function create(resource: JsonObject = {}) {
  const answer = await stack.send('POST', '/Users', { userName: unique(), ...resource })
  expect([answer.status, answer.body['detail']]).toEqual([201, undefined])
  const id = String(answer.body['id'])
  return { id, address: `/Users/${id}`, etag: String(answer.headers['etag']), body: answer.body }
}

describe('logins that users could take for others', () => {
  const refused = { status: '400', scimType: 'invalidValue', detail: expect.stringMatching(/^userName must not/) }

  test.each(['ada ', 'ad\r\na', '\u202enimda', 'ａｄａ', 'a\u200bda', ' '])('are refused: %j', async (userName) => {
    expect((await stack.send('POST', '/Users', { userName })).body).toMatchObject(refused)
    const { address, body } = await create()
    expect((await stack.send('PUT', address, { userName })).body).toMatchObject(refused)
    expect((await stack.send('PATCH', address, replace('userName', userName))).body).toMatchObject(refused)
    expect((await stack.send('GET', address)).body).toEqual(body)
  })

  test.each(['old ', 'ol\u202ed', 'ｏｌｄ'])('are kept by users who have them: %j', async (userName) => {
    await createUser(stack.directory, { userID: userName, attributes: Attributes.from({}), groups: [] })
    const filter = encodeURIComponent(`userName eq ${JSON.stringify(userName)}`)
    const { body } = await stack.send('GET', `/Users?filter=${filter}`)
    expect(body).toMatchObject({ totalResults: 1, Resources: [{ userName }] })
    const address = `/Users/${(body['Resources'] as { id: string }[])[0]?.id}`
    expect((await stack.send('PUT', address, { userName, title: 'x' })).body).toMatchObject({ userName, title: 'x' })
    expect((await stack.send('PATCH', address, replace('userName', unique()))).status).toBe(200)
    expect((await stack.send('DELETE', address)).status).toBe(204)
  })
})

describe('versions', () => {
  test('every answer has ETag, meta.version and Location', async () => {
    const { address, etag, body } = await create()
    const read = await stack.send('GET', address)
    expect(read.headers['etag']).toBe(etag)
    expect(body['meta']).toMatchObject({ version: etag, location: base + address })
    expect(read.headers['location']).toBe(base + address)
    expect((await stack.send('GET', address, undefined, { 'if-none-match': etag })).status).toBe(304)
    const changed = await stack.send('PATCH', address, replace('title', 'x'))
    expect(changed.headers['etag']).not.toBe(etag)
  })

  test.each(['PUT', 'PATCH', 'DELETE'])('%s with a stale If-Match is 412 and does nothing', async (method) => {
    const { address, etag, body } = await create()
    await stack.send('PATCH', address, replace('title', 'first'))
    const sent =
      method === 'PUT'
        ? { userName: body['userName'] ?? '' }
        : method === 'PATCH'
          ? replace('title', 'second')
          : undefined
    expect((await stack.send(method, address, sent, { 'if-match': etag })).status).toBe(412)
    expect((await stack.send('GET', address)).body['title']).toBe('first')
    const { headers } = await stack.send('GET', address)
    const right = await stack.send(method, address, sent, { 'if-match': String(headers['etag']) })
    expect(right.status).toBe(method === 'DELETE' ? 204 : 200)
  })

  test('one of many with the same If-Match, in several processes, wins', async () => {
    const { address, etag } = await create()
    const others = await Promise.all([stack.gateway(builtInParams), stack.gateway(builtInParams)])
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        (others[i % 2]?.send ?? stack.send)('PATCH', address, replace('title', `t${i}`), { 'if-match': etag }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(11).fill(412)])
  })

  test('without If-Match no concurrent change is lost', async () => {
    const { address } = await create()
    const gateways = await Promise.all([stack.gateway(builtInParams), stack.gateway(builtInParams)])
    const operations = ['title', 'nickName', 'displayName', 'userType', 'locale', 'timezone']
    const answers = await Promise.all(
      operations.map((path, i) => (gateways[i % 2]?.send ?? stack.send)('PATCH', address, replace(path, 'new'))),
    )
    expect(answers.map(({ status }) => status)).toEqual(operations.map(() => 200))
    expect((await stack.send('GET', address)).body).toMatchObject(Object.fromEntries(operations.map((o) => [o, 'new'])))
  })
})

describe('another userName', () => {
  test('renames the user, and keeps id and attributes', async () => {
    const { id, address } = await create({ title: 'T', emails: [{ value: 'e@example.com' }] })
    const userName = unique()
    const { status, body } = await stack.send('PATCH', address, replace('userName', userName))
    expect([status, body['detail']]).toEqual([200, undefined])
    expect(body).toMatchObject({ id, userName, title: 'T', emails: [{ value: 'e@example.com' }] })
    const stored = await stack.directory.lookupUserByLogin(userName)
    expect(stored?.id).toBe(id)
    expect(stored?.attributes.values('userName')).toEqual([userName])
  })

  test('by PUT, and in another letter case', async () => {
    const { address, body } = await create()
    const userName = String(body['userName']).toUpperCase()
    expect((await stack.send('PUT', address, { userName })).body['userName']).toBe(userName)
    expect((await stack.directory.lookupUserByLogin(userName))?.userID).toBe(userName)
  })

  test('that is taken is 409 in any letter case', async () => {
    const { body: other } = await create()
    const { address, body: before } = await create()
    const userName = String(other['userName']).toUpperCase()
    const { status, body } = await stack.send('PATCH', address, replace('userName', userName))
    expect([status, body['scimType']]).toEqual([409, 'uniqueness'])
    expect((await stack.send('GET', address)).body['userName']).toBe(before['userName'])
  })

  test('is refused if logins are ids', async () => {
    const { send } = await stack.gateway({ ...builtInParams, idAttributeName: 'userName' })
    const { body } = await create()
    const answer = await send('PATCH', `/Users/${String(body['userName'])}`, replace('userName', unique()))
    expect([answer.status, answer.body['scimType']]).toEqual([400, 'mutability'])
  })
})

test('a PUT without active neither activates nor deactivates', async () => {
  for (const active of [true, false]) {
    const { address, body } = await create({ active })
    const answer = await stack.send('PUT', address, { userName: body['userName'] ?? '', title: 'Dr' })
    expect([answer.status, answer.body['title'], answer.body['active']]).toEqual([200, 'Dr', active])
  }
})

describe('users that return', () => {
  test('with the same userName are reactivated with the new values and the old id', async () => {
    const userName = unique()
    const { id, address } = await create({ userName, title: 'old', nickName: 'gone' })
    await stack.send('PATCH', address, replace('active', false))
    const { status, headers, body } = await stack.send('POST', '/Users', {
      userName: userName.toUpperCase(),
      title: 'new',
    })
    expect(status).toBe(201)
    expect(headers['location']).toBe(base + address)
    expect(body).toMatchObject({ id, title: 'new', active: true })
    expect(body['nickName']).toBeUndefined()
  })

  test('with the same externalId too, under another userName', async () => {
    const externalId = `ext-${unique()}`
    const { id, address } = await create({ externalId })
    await stack.send('PATCH', address, replace('active', false))
    const userName = unique()
    const { status, body } = await stack.send('POST', '/Users', { userName, externalId })
    expect(status).toBe(201)
    expect(body).toMatchObject({ id, userName, active: true })
  })

  test('active users keep their userName, and an externalId may be shared', async () => {
    const externalId = `ext-${unique()}`
    const { id, body: first } = await create({ externalId, active: true })
    const again = await stack.send('POST', '/Users', { userName: first['userName'] ?? '', externalId })
    expect([again.status, again.body['scimType']]).toEqual([409, 'uniqueness'])
    const { id: second } = await create({ externalId })
    expect(second).not.toBe(id)
  })

  test('are rejected for clients that do it otherwise, and when created inactive', async () => {
    const { address, body } = await create()
    const userName = body['userName'] ?? ''
    await stack.send('PATCH', address, replace('active', false))
    const { send } = await stack.gateway({ ...builtInParams, client: 'entra' })
    expect((await send('POST', '/Users', { userName })).status).toBe(409)
    expect((await stack.send('POST', '/Users', { userName, active: false })).status).toBe(409)
    expect((await stack.send('GET', address)).body['active']).toBe(false)
  })
})

describe('strict clients', () => {
  test.each<[string, JsonObject]>([
    ['booleans in quotes', { active: 'False' }],
    ['unknown attributes', { favoriteColor: 'red' }],
  ])('%s are errors', async (_name, resource) => {
    const { send } = await stack.gateway({ ...builtInParams, client: 'strict' })
    const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User']
    expect((await send('POST', '/Users', { schemas, userName: unique(), ...resource })).status).toBe(400)
    expect((await send('POST', '/Users', { schemas, userName: unique() })).status).toBe(201)
  })
})

test('one of many requests in several processes that create one name succeeds', async () => {
  const gateways = await Promise.all(Array.from({ length: 8 }, () => stack.gateway(builtInParams)))
  const userName = unique()
  const answers = await Promise.all(
    gateways.map(({ send }, n) => send('POST', '/Users', { userName, externalId: `${n}` })),
  )
  const statuses = answers.map(({ status }) => status)
  expect(statuses.toSorted()).toEqual([201, ...Array(7).fill(409)])
  const { body } = await stack.send('GET', `/Users?filter=${encodeURIComponent(`userName eq "${userName}"`)}`)
  expect(body).toMatchObject({ totalResults: 1, Resources: [{ externalId: `${statuses.indexOf(201)}` }] })
})

test('an inactive user stays readable and keeps its groups', async () => {
  const { address, body } = await create()
  const { userID, attributes } = (await stack.directory.lookupUserByLogin(String(body['userName']))) ?? { userID: '' }
  expect(attributes).toBeDefined()
  await createGroup(stack.directory, `team ${userID}`)
  await joinGroup(stack.directory, `team ${userID}`, [userID])
  const { body: inactive } = await stack.send('PATCH', address, replace('active', 'False'))
  expect(inactive).toMatchObject({ active: false, groups: [{ display: `team ${userID}` }] })
})

test('DELETE is 204, then 404', async () => {
  const { address } = await create()
  expect((await stack.send('DELETE', address)).status).toBe(204)
  expect((await stack.send('DELETE', address)).status).toBe(404)
  expect((await stack.send('GET', address)).status).toBe(404)
})

test('attributes and excludedAttributes apply to answers to changes too', async () => {
  const { address } = await create({ title: 'x', nickName: 'y' })
  const patched = await stack.send('PATCH', `${address}?attributes=title`, replace('title', 'z'))
  expect(Object.keys(patched.body).sort()).toEqual(['id', 'schemas', 'title'])
  const created = await stack.send('POST', '/Users?excludedAttributes=nickName,meta', {
    userName: unique(),
    nickName: 'n',
  })
  expect(created.body['nickName']).toBeUndefined()
  expect(created.body['meta']).toBeUndefined()
})

describe('a strict client', () => {
  test.each([
    ['/Users', 'externalId eq jyoung'],
    ['/Users', 'active eq "True"'],
    ['/Users', 'department eq "x"'],
    ['/Groups', 'externalId eq jyoung'],
    ['', 'externalId eq jyoung'],
  ])('must follow the grammar: %s %s', async (path, filter) => {
    const { send } = await stack.gateway({ ...builtInParams, client: 'strict' })
    const query = `${path}?filter=${encodeURIComponent(filter)}`
    expect((await send('GET', query)).body['scimType']).toBe('invalidFilter')
    expect((await stack.send('GET', query)).status).toBe(200)
  })

  test('queries users and groups in one filter', async () => {
    const { send } = await stack.gateway({ ...builtInParams, client: 'strict' })
    const filter = encodeURIComponent('userName eq "nobody" or displayName eq "nothing"')
    expect((await send('GET', `?filter=${filter}`)).body['totalResults']).toBe(0)
  })

  test('replaces the present value, or gets noTarget', async () => {
    const { send } = await stack.gateway({ ...builtInParams, client: 'strict' })
    const { address } = await create()
    const first = replace('emails[type eq "work"].value', 'a@example.com')
    expect((await send('PATCH', address, first)).body['scimType']).toBe('noTarget')
    expect((await stack.send('PATCH', address, first)).status).toBe(200)
    expect((await send('PATCH', address, first)).status).toBe(200)
  })
})
