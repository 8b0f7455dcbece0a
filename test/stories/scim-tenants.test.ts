import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'

async function start(options: Partial<Parameters<typeof startGatewayProcess>[0]> = {}): Promise<GatewayProcess> {
  const gateway = await startGatewayProcess({ config: 'examples/quickstart', ...options })
  onTestFinished(async () => void (await gateway.stop()))
  return gateway
}

const reason = 'A test'

/** What an operator of the portal does. */
function consoleOf(person: PortalPerson) {
  const send = async (method: string, path: string, body?: object) => {
    const { status, json } = await person.send(method, `/main/admin/${path}`, body)
    return { status, body: json }
  }
  const add = async (name: string, more: object = {}) => {
    const { status, body } = await send('POST', 'scim-tenants', { name, ...more })
    expect([status, body.state]).toEqual([201, 'pending'])
    const token = await send('POST', 'scim-tokens', { client: name, name: 'default', expiresInDays: 365 })
    expect(token.status).toBe(201)
    return { address: String(body.address), token: String(token.body.text), tokenId: String(token.body.id) }
  }
  const stateOf = async (name: string): Promise<string> => (await send('GET', `scim-tenants/${name}`)).body.state
  return { send, add, stateOf }
}

async function call(address: string, token: string, body?: object) {
  const response = await fetch(address, {
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  })
  return { status: response.status, text: await response.text() }
}

const isAnswered = (address: string, token: string, status: number) =>
  until(async () => (await call(address, token)).status === status, 60_000)

test('an operator adds a tenant and its token in the console, and ends both', async () => {
  const config = join(temporaryFolder(), 'config')
  cpSync('examples/quickstart', config, { recursive: true })
  const gateway = await start({ config })
  const { send, add, stateOf } = consoleOf(await PortalPerson.logIn(gateway, 'alan'))
  const [acme, zenith] = [await add('acme', { profile: 'okta' }), await add('zenith', { path: '/scim/zenith' })]
  expect(acme.address).toBe(`${gateway.url}/tenants/acme/scim`)
  const users = `${acme.address}/Users`
  await isAnswered(users, acme.token, 200)
  await until(async () => (await stateOf('acme')) === 'served', 60_000)
  const created = await call(users, acme.token, { userName: 'ann' })
  expect(created.status, created.text).toBe(201)
  expect(JSON.parse(created.text).meta.location).toContain(`${users}/`)
  // Neither its users nor its token are those of another tenant, and no other spelling leads to it.
  const other = `${zenith.address}/Users`
  await isAnswered(other, zenith.token, 200)
  expect((await call(other, zenith.token)).text).not.toContain('ann')
  expect((await call(users, zenith.token)).status).toBe(401)
  for (const odd of [
    '/tenants/ACME/scim',
    '/tenants/acme%2fscim',
    '/tenants/acme/scim2',
    '/scim/zenith/../../tenants/x',
  ]) {
    expect((await call(`${gateway.url}${odd}/Users`, acme.token)).text, odd).not.toContain('"ann"')
  }
  const tokens = async () => (await send('GET', 'scim-tokens?client=acme')).body.tokens
  await until(async () => (await tokens())[0].lastUsed !== undefined, 60_000)
  expect(await tokens()).toMatchObject([{ name: 'default', state: 'valid', createdBy: 'alan' }])
  expect((await send('GET', 'scim-tenants/acme')).body).toMatchObject({ users: 1, groups: 0 })
  const versionOf = async () => (await send('GET', 'scim-tenants/acme')).body.version
  expect((await send('POST', 'scim-tenants/acme/remove', { version: await versionOf(), reason })).status).toBe(409)
  expect((await send('POST', 'scim-tenants/acme/disable', { version: await versionOf(), reason })).status).toBe(200)
  await isAnswered(users, acme.token, 401)
  expect((await send('POST', 'scim-tenants/acme/enable', { version: await versionOf(), reason })).status).toBe(200)
  await isAnswered(users, acme.token, 200)
  expect((await send('POST', `scim-tokens/${acme.tokenId}/revoke`, { reason })).status).toBe(200)
  await isAnswered(users, acme.token, 401)
  // A change of the YAML that is refused keeps everything as it was, and the tenant says so.
  const portal = readFileSync(join(config, 'portal.yaml'), 'utf8')
  writeFileSync(join(config, 'portal.yaml'), portal.replace('className: ', 'className: missing.'))
  await until(async () => (await send('GET', 'configuration')).body.latest.outcome === 'refused', 60_000)
  expect((await send('POST', 'scim-tenants/acme/disable', { version: await versionOf(), reason })).status).toBe(200)
  await until(async () => (await stateOf('acme')) === 'pending', 60_000)
  expect((await send('GET', 'scim-tenants/zenith')).body.state).toBe('served')
  writeFileSync(join(config, 'portal.yaml'), portal)
  await until(async () => (await stateOf('acme')) === 'disabled', 60_000)
  // What is written in YAML wins, and the tenant says so.
  const target = 'apiVersion: openunison.tremolo.io/v1\nkind: Target\nmetadata: { name: zenith-users }\n'
  writeFileSync(join(config, 'zenith.yaml'), `${target}spec: { className: targets.Database }\n`)
  await until(async () => (await stateOf('zenith')) === 'refused', 60_000)
  expect((await send('POST', 'scim-tenants', { name: 'zenith2', path: '/tenants/acme' })).status).toBe(409)
})

test('a tenant and its token outlive a killed process', async () => {
  const first = await start()
  const { add } = consoleOf(await PortalPerson.logIn(first, 'alan'))
  const { token } = await add('acme')
  first.process.kill('SIGKILL')
  const second = await start({ dataFolder: first.dataFolder })
  // From its first request on.
  expect((await call(`${second.url}/tenants/acme/scim/Users`, token)).status).toBe(200)
})

describe.skipIf(postgresUrl() === '')('two gateways', () => {
  test('serve a tenant that is added at one of them', async () => {
    const options = { dataFolder: temporaryFolder(), args: ['--database', await freshSchema()] }
    const [one, two] = [await start(options), await start(options)]
    const { add, send } = consoleOf(await PortalPerson.logIn(one, 'alan'))
    const { token } = await add('acme')
    const users = [one, two].map(({ url }) => `${url}/tenants/acme/scim/Users`)
    await Promise.all(users.map((address) => isAnswered(address, token, 200)))
    expect((await send('POST', 'scim-tenants/acme/disable', { version: 1, reason })).status).toBe(200)
    await Promise.all(users.map((address) => isAnswered(address, token, 403)))
  })
})
