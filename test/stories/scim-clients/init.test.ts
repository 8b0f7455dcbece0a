import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scimClientNames } from '#cli/init/scim.ts'
import { runCommand } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { coreGroup, coreUser, type ScimClient } from '#testing/scim/scim-client.ts'
import { PublicScimClient, publicHost, runScimInit } from '#testing/scim/scim-init.ts'
import { leavers } from '#testing/scim/scim-leavers.ts'
import { fresh } from '#testing/scim/scim-story.ts'
import { providerSuites } from './suites.ts'

/** The configurations of all clients in one folder, each by `scim init`, behind a proxy that ends TLS. */
const config = mkdtempSync(join(tmpdir(), 'gatehouse-init-all-'))
const clients = new Map<string, PublicScimClient>()
let gateway: GatewayProcess

beforeAll(async () => {
  for (const name of scimClientNames) {
    const { address, token } = await runScimInit(name, config)
    clients.set(name, new PublicScimClient(address, token, () => gateway.url))
  }
  addLoginPage()
  gateway = await startGatewayProcess({ config, args: ['--trusted-proxy', '127.0.0.1'] })
}, 180_000)
afterAll(async () => {
  await gateway?.stop()
  rmSync(config, { recursive: true, force: true })
})

describe('without a proxy, served over TLS', () => {
  let overTls: GatewayProcess
  const direct = new Map<string, PublicScimClient>()
  beforeAll(async () => {
    overTls = await startGatewayProcess({ config, tls: true })
    for (const { base, token } of clients.values()) {
      direct.set(new URL(base).pathname, new PublicScimClient(base, token, () => overTls.url))
    }
  })
  afterAll(async () => {
    for (const client of direct.values()) client.close()
    await overTls?.stop()
  })
  for (const { name, path, story } of providerSuites) {
    describe(name, () =>
      story(() => {
        const client = direct.get(path)
        if (client === undefined) throw new Error(`no client at ${path}`)
        return client
      }),
    )
  }
})

/** The page of examples/login, for the users whom Okta provisions. */
function addLoginPage(): void {
  cpSync('examples/login', config, { recursive: true })
  const file = join(config, 'authentication.yaml')
  const suffix = '  suffix: ou=staff,o=Tremolo\n'
  const params = '  params:\n    - name: directory\n      value: okta-users\n'
  writeFileSync(file, readFileSync(file, 'utf8').replace(suffix, suffix + params))
}

const clientOf = (name: string): PublicScimClient => {
  const client = clients.get(name)
  if (client === undefined) throw new Error(`no client ${name}`)
  return client
}

const create = async (client: ScimClient): Promise<{ id: string; userName: string }> => {
  const { status, body } = await client.post('/Users', {
    schemas: [coreUser],
    userName: fresh('user'),
    name: { givenName: 'Lea', familyName: 'Ver' },
    emails: [{ type: 'work', value: `${fresh('mail')}@example.com` }],
    active: true,
  })
  expect(status).toBe(201)
  return body
}

describe.each(scimClientNames)('scim init --client %s, under its public name', (name) => {
  test('users and groups are created, changed and deleted, and every address is the public one', async () => {
    const client = clientOf(name)
    const user = await create(client)
    const { headers, body } = await client.get(`/Users/${user.id}`)
    expect(body).toMatchObject({
      active: true,
      meta: { location: `https://${publicHost}/scim/${name}/Users/${user.id}` },
    })
    expect(headers.get('content-type')).toContain('application/scim+json')
    expect((await client.filter('/Users', `userName eq "${user.userName}"`)).body.totalResults).toBe(1)
    const { body: group } = await client.post('/Groups', { schemas: [coreGroup], displayName: fresh('group') })
    const value = [{ value: user.id }]
    expect((await client.patch(`/Groups/${group.id}`, [{ op: 'add', path: 'members', value }])).status).toBe(204)
    expect(await client.members(group.id)).toEqual([user.id])
    expect((await client.delete(`/Groups/${group.id}`)).status).toBe(204)
  })

  test('another name, no token and the token of another client are rejected', async () => {
    const client = clientOf(name)
    expect((await client.get('/Users', { host: '127.0.0.1' })).status).toBe(404)
    expect((await client.get('/Users', { authorization: '' })).status).toBe(401)
    const other = clientOf(name === 'okta' ? 'entra' : 'okta')
    expect((await client.get('/Users', { authorization: `Bearer ${other.token}` })).status).toBe(401)
  })

  test.each(leavers.filter(({ client }) => client === name))(
    'a leaver is deactivated in the target: $way',
    async (leaver) => {
      const client = clientOf(name)
      const { id, userName } = await create(client)
      const { status } = await leaver.deprovision(client, id)
      expect([200, 204]).toContain(status)
      const after = await client.get(`/Users/${id}`)
      if (status === 204) expect(after.status).toBe(404)
      else expect(after.body).toMatchObject({ userName, active: false })
    },
  )
})

describe('special behavior of single clients', () => {
  test('GitHub sends its own media type and filters by external_id', async () => {
    const github = clientOf('github')
    const user = { schemas: [coreUser], userName: fresh('octo'), externalId: fresh('external') }
    const type = { 'content-type': 'application/vnd.github+json' }
    const { status, body } = await github.call('POST', '/Users', user, type)
    expect(status).toBe(201)
    const found = await github.filter('/Users', `external_id eq "${user.externalId}"`)
    expect(found.body).toMatchObject({ totalResults: 1, Resources: [{ id: body.id }] })
  })

  test('Slack filters by email', async () => {
    const slack = clientOf('slack')
    const { body } = await slack.get(`/Users/${(await create(slack)).id}`)
    const found = await slack.filter('/Users', `email eq "${body.emails[0].value}"`)
    expect(found.body).toMatchObject({ totalResults: 1, Resources: [{ id: body.id }] })
  })

  test('clients of AWS may not empty a group at once', async () => {
    const aws = clientOf('aws')
    const user = await create(aws)
    const members = [{ value: user.id }]
    const { body } = await aws.post('/Groups', { schemas: [coreGroup], displayName: fresh('group'), members })
    expect((await aws.patch(`/Groups/${body.id}`, [{ op: 'remove', path: 'members' }])).status).toBe(400)
    expect(await aws.members(body.id)).toEqual([user.id])
  })

  test('Google creates a suspended user, who is inactive from the start', async () => {
    const google = clientOf('google')
    const user = { schemas: [coreUser], userName: fresh('suspended'), active: false }
    const { status, body } = await google.post('/Users', user)
    expect([status, body.active]).toEqual([201, false])
  })
})

test('a user whom Okta deactivates can no longer log in, and can again once activated', async () => {
  const okta = clientOf('okta')
  const { id, userName } = await create(okta)
  const password = 'correct horse battery'
  const args = ['user', 'passwd', userName, '--config', config, '--data', gateway.dataFolder]
  expect(await runCommand(args, `${password}\n`)).toMatchObject({ code: 0 })
  const logIn = async () => (await new PlainBrowser(gateway.url).logIn('/hello', userName, password)).status
  expect(await logIn()).toBe(303)
  const activate = (active: boolean) => okta.patch(`/Users/${id}`, [{ op: 'replace', value: { active } }])
  expect((await activate(false)).status).toBe(200)
  expect(await logIn()).toBe(401)
  expect((await activate(true)).status).toBe(200)
  expect(await logIn()).toBe(303)
})
