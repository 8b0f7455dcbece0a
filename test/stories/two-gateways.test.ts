import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'

let gateway: GatewayProcess
let both: string
let peopleOnly: string

beforeAll(async () => {
  gateway = await startGatewayProcess({ config: 'examples/quickstart' })
  both = await gateway.token('--subject', 'idp', '--claim', 'role=crm')
  peopleOnly = await gateway.token('--subject', 'idp')
})
afterAll(() => gateway.stop())

async function call(method: string, path: string, token: string, body?: unknown) {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}

const exists = async (gatewayPath: string, userName: string): Promise<boolean> => {
  const filter = encodeURIComponent(`userName eq "${userName}"`)
  return (await call('GET', `${gatewayPath}/Users?filter=${filter}`, both)).body.totalResults === 1
}

test('a user created through one gateway is unknown to the other', async () => {
  expect((await call('POST', '/scim/people/Users', both, { userName: 'only-people' })).status).toBe(201)
  expect((await call('POST', '/scim/crm/Users', both, { userName: 'only-crm' })).status).toBe(201)
  expect([await exists('/scim/people', 'only-people'), await exists('/scim/crm', 'only-people')]).toEqual([true, false])
  expect([await exists('/scim/people', 'only-crm'), await exists('/scim/crm', 'only-crm')]).toEqual([false, true])
})

test('the same login in both is two users: deleting one keeps the other', async () => {
  expect([await exists('/scim/people', 'alan'), await exists('/scim/crm', 'alan')]).toEqual([true, true])
  expect((await call('DELETE', '/scim/crm/Users/alan', both)).status).toBe(204)
  expect([await exists('/scim/people', 'alan'), await exists('/scim/crm', 'alan')]).toEqual([true, false])
})

test('each gateway has its own rules', async () => {
  expect((await call('GET', '/scim/people/Users', peopleOnly)).status).toBe(200)
  expect(await call('GET', '/scim/crm/Users', peopleOnly)).toMatchObject({ status: 403, body: { status: '403' } })
})

test('a group of one is not a group of the other', async () => {
  const people = (await call('GET', '/scim/people/Groups', both)).body.Resources as { displayName: string }[]
  const crm = (await call('GET', '/scim/crm/Groups', both)).body.Resources as { displayName: string }[]
  expect(people.map((group) => group.displayName).sort()).toEqual([
    'administrators',
    'engineering',
    'everyone',
    'managers',
    'payments',
    'vault',
  ])
  expect(crm.map((group) => group.displayName).sort()).toEqual(['sales', 'support'])
})
