import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'

/** A second Main API, for users who log in elsewhere and are identified there by their badge number. */
const badgeApplication = (portal: string, chain: string): string =>
  `${chain.replace('name: api', 'name: badge').replace('(uid=$', '(badge=$')}---
${portal.split('\n---\n')[0]?.replace('name: portal', 'name: badge-portal').replace('/portal/main', '/badge/main').replace('authChain: api', 'authChain: badge')}
`

function configuration(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-one-person-'))
  cpSync('examples/portal-api', folder, { recursive: true })
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8')
  const chain = `${read('authentication.yaml').split('\n---\n').at(-1)}\n`
  writeFileSync(join(folder, 'badge.yaml'), badgeApplication(read('portal.yaml'), chain))
  const seed = JSON.parse(read('seed/people.json')) as { users: { userID: string; attributes: object }[] }
  for (const user of seed.users) user.attributes = { ...user.attributes, badge: [`badge of ${user.userID}`] }
  writeFileSync(join(folder, 'seed/people.json'), JSON.stringify(seed))
  return folder
}

describe('one user with two logins, on SQLite', () => story())
describe.skipIf(postgresUrl() === '')('one user with two logins, on PostgreSQL', () => story(freshSchema))

function story(databaseUrl?: () => Promise<string>): void {
  const config = configuration()
  let gateway: GatewayProcess
  beforeAll(async () => {
    const url = await databaseUrl?.()
    gateway = await startGatewayProcess({ config, args: url === undefined ? [] : ['--database', url] })
  })
  afterAll(async () => {
    await gateway?.stop()
    rmSync(config, { recursive: true, force: true })
  })

  const send = async (mount: 'portal' | 'badge', as: string, method: string, path: string, body?: unknown) => {
    const token = await gateway.token('--subject', as)
    const response = await fetch(`${gateway.url}/${mount}/main${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }
  const byLogin = (as: string, method: string, path: string, body?: unknown) => send('portal', as, method, path, body)
  const byBadge = (as: string, method: string, path: string, body?: unknown) =>
    send('badge', `badge of ${as}`, method, path, body)
  const requestsOf = async (ask: typeof byLogin) =>
    (await ask('grace', 'GET', '/requests')).body.requests as { id: string; requestor: string }[]
  const openFor = async (as: string) =>
    (await byLogin(as, 'GET', '/approvals')).body.approvals as { approval: string; workflow: string }[]

  test('a user who requests by one login cannot approve by the other', async () => {
    // Another owner, so that another user can decide the request.
    const line = { uuid: crypto.randomUUID(), name: 'join-group', reason: 'on call' }
    const offers = (await byLogin('linus', 'GET', '/workflows/org/operations')).body as {
      filterAnnotations: { Group: string }
      encryptedParams: string
    }[]
    const owners = offers.find(({ filterAnnotations }) => filterAnnotations.Group === 'owners')
    const joined = await byLogin('linus', 'PUT', '/workflows', [{ ...line, encryptedParams: owners?.encryptedParams }])
    expect(Object.values(joined.body)).toEqual(['success'])
    await until(async () => (await byLogin('linus', 'GET', '/user')).body.groups.includes('owners'), 20_000)

    const request = { uuid: crypto.randomUUID(), name: 'vault-access', reason: 'on call', subjects: ['ada'] }
    expect(Object.values((await byBadge('grace', 'PUT', '/workflows', [request])).body)).toEqual(['success'])
    await until(async () => (await openFor('linus')).length === 1, 20_000)
    const [open] = await openFor('linus')
    const path = `/approvals/${open?.approval}`
    expect(await openFor('grace')).toEqual([])
    expect((await byLogin('grace', 'GET', path)).body).toMatchObject({ mayDecide: false, approvers: ['linus'] })
    for (const ask of [byLogin, byBadge]) {
      const decided = await ask('grace', 'PUT', path, { approved: true, reason: 'my own' })
      expect(decided.status).toBe(403)
    }
    expect((await byLogin('ada', 'GET', '/user')).body.groups).not.toContain('vault')
    expect((await byLogin('linus', 'PUT', path, { approved: true, reason: 'fine' })).status).toBe(200)
    await until(async () => (await byBadge('ada', 'GET', '/user')).body.groups.includes('vault'), 20_000)
  })

  test('requests and favorites are the same by either login', async () => {
    const [first] = await requestsOf(byBadge)
    expect(first).toBeDefined()
    expect(await requestsOf(byLogin)).toEqual(await requestsOf(byBadge))
    const about = async (ask: typeof byLogin) => (await ask('ada', 'GET', '/requests?about=me')).body.requests
    expect(await about(byLogin)).toMatchObject([{ id: first?.id }])
    expect(await about(byBadge)).toEqual(await about(byLogin))
    expect((await byLogin('grace', 'GET', `/requests/${first?.id}`)).status).toBe(200)
    expect((await byBadge('grace', 'PUT', '/favorites/url/wiki')).status).toBeLessThan(300)
    expect((await byLogin('grace', 'GET', '/favorites')).body.favorites).toMatchObject([{ name: 'wiki' }])
    expect((await byLogin('ada', 'GET', '/favorites')).body.favorites).toEqual([])
  })
}
