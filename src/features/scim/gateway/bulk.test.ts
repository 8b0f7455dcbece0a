import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { base, openGateway, People, type Send } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

const schemas = ['urn:ietf:params:scim:api:messages:2.0:BulkRequest']

async function open() {
  const people = new People()
  people.add('bob', { enabled: ['true'] })
  people.add('dave', { enabled: ['true'], last: ['D'] })
  people.addGroup('guides')
  return openGateway(scimGateway, { people })
}

async function bulk(send: Send, operations: JsonValue, rest = {}) {
  const answer = await send('POST', '/Bulk', { schemas, Operations: operations, ...rest })
  expect(answer.status).toBe(200)
  expect(answer.body['schemas']).toEqual(['urn:ietf:params:scim:api:messages:2.0:BulkResponse'])
  return answer.body['Operations'] as JsonObject[]
}

test('RFC 7644 3.7.3: one operation of each kind', async () => {
  const { send, people } = await open()
  const results = await bulk(
    send,
    [
      { method: 'POST', path: '/Users', bulkId: 'qwerty', data: { userName: 'Alice' } },
      { method: 'PUT', path: '/Users/bob', version: 'W/"7"', data: { userName: 'bob', name: { givenName: 'Bob' } } },
      {
        method: 'PATCH',
        path: '/Users/dave',
        data: [
          { op: 'remove', path: 'name.familyName' },
          { op: 'add', path: 'name.givenName', value: 'Dave' },
        ],
      },
      { method: 'DELETE', path: '/Users/bob', version: 'W/"8"' },
    ],
    { failOnErrors: 1 },
  )
  expect(results).toMatchObject([
    { location: `${base}/Users/Alice`, method: 'POST', bulkId: 'qwerty', version: 'W/"7"', status: '201' },
    { location: `${base}/Users/bob`, method: 'PUT', version: 'W/"8"', status: '200' },
    { location: `${base}/Users/dave`, method: 'PATCH', version: 'W/"8"', status: '200' },
    { location: `${base}/Users/bob`, method: 'DELETE', status: '204' },
  ])
  expect(results.every((result) => !('response' in result))).toBe(true)
  expect([...people.people.keys()]).toEqual(['dave', 'alice'])
  expect(people.people.get('dave')?.attributes.values('first')).toEqual(['Dave'])
})

test('RFC 7644 3.7.3: each error is the same as for a single request', async () => {
  const { send } = await open()
  const results = await bulk(send, [
    { method: 'POST', path: '/Users', bulkId: 'a', data: { userName: 'BOB' } },
    { method: 'POST', path: '/Users', bulkId: 'b', data: { userName: 7 } },
    { method: 'PATCH', path: '/Users/none', data: [{ op: 'replace', path: 'nickName', value: 'x' }] },
    { method: 'DELETE', path: '/Devices/x' },
    { method: 'DELETE', path: '/Users' },
    { method: 'POST', path: '/Users/bob', bulkId: 'c', data: {} },
    { method: 'DELETE', path: '/Users/%' },
    { method: 'POST', path: '/Users/.search', bulkId: 'd', data: {} },
    { method: 'POST', path: '/Bulk', bulkId: 'e', data: { schemas, Operations: [] } },
    { method: 'DELETE', path: '/Me' },
    { method: 'DELETE', path: '/Users/bob', version: 'W/"6"' },
    { method: 'DELETE', path: '/Users/bob', version: '7' },
  ])
  const errors = results.map(({ status, response }) => [status, (response as JsonObject | undefined)?.['scimType']])
  expect(errors).toEqual([
    ['409', 'uniqueness'],
    ['400', 'invalidValue'],
    ['404', undefined],
    ['404', undefined],
    ['405', undefined],
    ['405', undefined],
    ['404', undefined],
    ['405', undefined],
    ['404', undefined],
    ['404', undefined],
    ['412', undefined],
    ['400', 'invalidValue'],
  ])
  expect(results[0]).toMatchObject({ response: { schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'] } })
  expect(results[0]).not.toHaveProperty('location')
  expect(results[2]).toMatchObject({ location: `${base}/Users/none` })
})

test('a forward reference, and one in a path', async () => {
  const { send, people } = await open()
  const results = await bulk(send, [
    {
      method: 'PATCH',
      path: '/Groups/group:guides',
      data: { Operations: [{ op: 'add', path: 'members', value: [{ value: 'bulkId:q' }] }] },
    },
    {
      method: 'PATCH',
      path: '/Users/bulkId:q',
      data: { Operations: [{ op: 'add', path: 'name.givenName', value: 'Al' }] },
    },
    { method: 'POST', path: '/Users', bulkId: 'q', data: { userName: 'alice' } },
  ])
  expect(results.map(({ location }) => location)).toEqual([
    `${base}/Groups/group:guides`,
    `${base}/Users/alice`,
    `${base}/Users/alice`,
  ])
  expect(people.memberships.get('guides')).toEqual(new Set(['alice']))
  expect(people.people.get('alice')?.attributes.values('first')).toEqual(['Al'])
})

test('an internal failure is 500 without its reason, and the other operations are performed', async () => {
  const { send, workflows } = await open()
  workflows.override = async ({ user }) => {
    if (user.userID === 'bob') throw new GatewayError('WORKFLOW_FAILED', 'secret reason')
    if (user.userID === 'dave') throw new Error('secret reason')
  }
  const results = await bulk(send, [
    { method: 'DELETE', path: '/Users/bob' },
    { method: 'DELETE', path: '/Users/dave' },
    { method: 'DELETE', path: '/Users/none' },
  ])
  expect(results.map(({ status }) => status)).toEqual(['500', '500', '404'])
  expect(JSON.stringify(results)).not.toContain('secret')
})

describe('rejected as a whole', () => {
  test.each([
    [{ schemas, Operations: [{ method: 'POST', path: '/Users', data: {} }] }, 400, 'invalidValue'],
    [{ schemas }, 400, 'invalidSyntax'],
    ['[', 400, 'invalidSyntax'],
    ['['.repeat(100_000), 400, 'invalidSyntax'],
    [{ schemas, Operations: new Array(1001).fill({ method: 'DELETE', path: '/Users/bob' }) }, 413, undefined],
  ])('%.60j', async (body, status, scimType) => {
    const { send, workflows } = await open()
    const answer = await send('POST', '/Bulk', body)
    expect([answer.status, answer.body['scimType']]).toEqual([status, scimType])
    expect(workflows.calls).toEqual([])
  })

  test('other methods are 405', async () => {
    const { send } = await open()
    expect(await send('GET', '/Bulk')).toMatchObject({ status: 405, headers: { allow: 'POST, OPTIONS' } })
  })
})
