import { describe, expect, test } from 'vitest'
import type { JsonObject } from '#kernel/json.ts'
import { base, openGateway, People, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

async function open() {
  const people = new People()
  people.add('ann')
  return openGateway(scimGateway, { people })
}

const named = (list: unknown): unknown[] => (list as JsonObject[]).map(({ name }) => name)

describe('discovery', () => {
  test('shows exactly what is supported', async () => {
    const { send } = await open()
    const { body } = await send('GET', '/ServiceProviderConfig')
    expect(body).toMatchObject({
      patch: { supported: true },
      filter: { supported: true, maxResults: 200 },
      bulk: { supported: true, maxOperations: 1000, maxPayloadSize: 4_194_304 },
      sort: { supported: true },
      etag: { supported: false },
      changePassword: { supported: true },
      pagination: {
        cursor: true,
        index: true,
        defaultPaginationMethod: 'index',
        defaultPageSize: 100,
        maxPageSize: 200,
      },
      meta: { location: `${base}/ServiceProviderConfig` },
    })
  })

  test('offers versions if changes can be bound to them', async () => {
    const people = Object.assign(new People(), { keepsVersions: true })
    const { send } = await openGateway(scimGateway, { people })
    expect((await send('GET', '/ServiceProviderConfig')).body).toMatchObject({ etag: { supported: true } })
  })

  test('resource types, all and one', async () => {
    const { send } = await open()
    expect(named((await send('GET', '/ResourceTypes')).body['Resources'])).toEqual(['User', 'Group'])
    expect((await send('GET', '/ResourceTypes/Group')).body).toMatchObject({
      endpoint: '/Groups',
      schemaExtensions: [],
    })
    expect((await send('GET', '/ResourceTypes/Device')).status).toBe(404)
  })

  test('/Schemas lists the attributes that this gateway stores', async () => {
    const { send } = await open()
    const list = (await send('GET', '/Schemas')).body
    expect(list).toMatchObject({ totalResults: 2, itemsPerPage: 2 })
    const user = (await send('GET', '/Schemas/urn:ietf:params:scim:schemas:core:2.0:User')).body
    const attributes = user['attributes'] as JsonObject[]
    expect(named(attributes)).toEqual(['userName', 'name', 'displayName', 'nickName', 'active', 'password', 'emails'])
    const of = (name: string) => attributes.find((attribute) => attribute['name'] === name)
    expect(of('displayName')).toMatchObject({ mutability: 'readOnly' })
    expect(of('nickName')).toMatchObject({ mutability: 'writeOnly', returned: 'never' })
    expect(of('userName')).toMatchObject({ required: true, uniqueness: 'server', caseExact: false })
    expect((await send('GET', '/Schemas/urn:other')).status).toBe(404)
    expect((await send('GET', '/Schemas?filter=name%20eq%20%22x%22')).status).toBe(403)
  })
})

describe('HTTP', () => {
  test.each([
    '/Devices',
    '/Users/a/b',
    '//',
    '//Users',
    '/users',
    '/__proto__',
    '/constructor',
    '/Bulk/x',
    '/.search/x',
    '/Users/%00',
    '/ServiceProviderConfig/x',
  ])('nothing at %s', async (path) => {
    const { send } = await open()
    const { status, body } = await send('GET', path)
    expect([status, body['status']]).toEqual([404, '404'])
  })

  test.each([
    ['POST', '/Users/ann', 'GET, PUT, PATCH, DELETE, HEAD, OPTIONS'],
    ['DELETE', '/Users', 'GET, POST, HEAD, OPTIONS'],
    ['POST', '/Schemas', 'GET, HEAD, OPTIONS'],
    ['TRACE', '/Users', 'GET, POST, HEAD, OPTIONS'],
    ['POST', '', 'GET, HEAD, OPTIONS'],
    ['DELETE', '/', 'GET, HEAD, OPTIONS'],
    ['PATCH', '/Bulk', 'POST, OPTIONS'],
  ])('%s %s is 405 with Allow', async (method, path, allow) => {
    const { send } = await open()
    const { status, headers } = await send(method, path, {})
    expect([status, headers['allow']]).toEqual([405, allow])
  })

  test('HEAD is GET without its body, OPTIONS lists the methods, a trailing slash is ignored', async () => {
    const { send } = await open()
    expect(await send('HEAD', '/Users/ann')).toMatchObject({ status: 200, body: {} })
    const length = Buffer.byteLength(`${JSON.stringify((await send('GET', '/Users/ann')).body)}\n`)
    expect((await send('HEAD', '/Users/ann')).headers['content-length']).toBe(String(length))
    expect((await send('HEAD', '/Users/none')).status).toBe(404)
    expect(await send('OPTIONS', '/Users')).toMatchObject({
      status: 204,
      headers: { allow: 'GET, POST, HEAD, OPTIONS' },
    })
    expect((await send('GET', '/Users/')).status).toBe(200)
  })

  test.each([
    ['github', 201, 200],
    ['tolerant', 415, 406],
    ['slack', 415, 406],
  ])("GitHub's media types from client %s: %i, %i", async (client, posted, read) => {
    const { send } = await openGateway(scimGateway, { params: { ...tutorialParams, client } })
    for (const [i, type] of [
      'application/vnd.github+json',
      'application/vnd.github.v3+json; charset=utf-8',
    ].entries()) {
      const headers = { 'content-type': type, accept: '*/*' }
      expect((await send('POST', '/Users', { userName: `new${i}` }, headers)).status).toBe(posted)
      expect((await send('GET', '/Users', undefined, { accept: type })).status).toBe(read)
    }
    const evil = { 'content-type': 'application/vnd.github+xml' }
    expect((await send('POST', '/Users', { userName: 'x' }, evil)).status).toBe(415)
  })

  test('media types', async () => {
    const { send } = await open()
    const post = (type: string) => send('POST', '/Users', { userName: 'new' }, { 'content-type': type })
    expect((await post('text/plain')).status).toBe(415)
    expect((await post('application/json; charset=iso-8859-1')).status).toBe(415)
    expect((await post('application/json; charset=utf-8')).status).toBe(201)
    expect((await send('GET', '/Users', undefined, { accept: 'text/html' })).status).toBe(406)
    expect((await send('GET', '/Users', undefined, { accept: 'application/json' })).status).toBe(200)
  })
})
