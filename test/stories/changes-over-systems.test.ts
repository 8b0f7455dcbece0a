import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { freshSchema } from '#testing/databases/postgres.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { ScimClient, type ScimServer, startScimServer } from '#testing/scim/scim-client.ts'
import { type Fault, type ScimProxy, startScimProxy } from '#testing/scim/scim-proxy.ts'

/** One gateway, one workflow, three systems of different types: the embedded database, tables and a SCIM service. */
let behind: ScimServer
let remote: ScimClient
let proxy: ScimProxy
let tables: DatabaseSync
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-systems-'))

beforeAll(async () => {
  behind = await startScimServer()
  remote = behind.client('/scim/v2')
  proxy = await startScimProxy(remote.base)
  tables = new DatabaseSync(join(folder, 'hr.db'))
  tables.exec(`create table persons (id integer primary key autoincrement, login text not null unique,
    title text, enabled text)`)
}, 60_000)
afterAll(async () => {
  tables?.close()
  proxy?.close()
  await behind?.process.stop()
  rmSync(folder, { recursive: true, force: true })
})

type System = 'people' | 'tables' | 'remote'

const workflow = (name: string, tasks: readonly object[]): string => `
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: ${name} }
spec: { tasks: ${JSON.stringify(tasks)} }
---`

function configurationOf(order: readonly System[]): string {
  const config = mkdtempSync(join(folder, 'config-'))
  mkdirSync(join(config, 'secrets/remote'), { recursive: true })
  writeFileSync(join(config, 'secrets/remote/token'), behind.token, { mode: 0o600 })
  writeFileSync(
    join(config, 'gateway.yaml'),
    `${workflow(
      'write',
      order.map((target) => ({ taskType: 'provision', target, sync: true })),
    )}
${workflow(
  'delete',
  order.map((target) => ({ taskType: 'delete', target })),
)}
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: people }
spec: { className: targets.Database, params: [] }
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: tables }
spec:
  className: targets.Sql
  params:
    - { name: url, value: "sqlite:${join(folder, 'hr.db')}" }
    - { name: userTable, value: persons }
    - { name: userName, value: login }
    - { name: userPrimaryKey, value: id }
    - { name: column.userName, value: login }
    - { name: column.title, value: title }
    - { name: column.active, value: enabled }
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: remote }
spec:
  className: targets.Scim
  params: [{ name: url, value: "${proxy.url.href}" }]
  secretParams: [{ name: token, secretName: remote, secretKey: token }]
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: scim }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ['*']
      uri: /scim
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain:
        - className: filters.ScimGateway
          params: { mapping: scim, lookupTarget: people, workflowName: write, deleteUserWorkflowName: delete }
`,
  )
  return config
}

async function start(config: string, options: Partial<Parameters<typeof startGatewayProcess>[0]> = {}) {
  const gateway = await startGatewayProcess({ config, ...options })
  onTestFinished(async () => void (await gateway.stop()))
  return { gateway, client: new ScimClient(`${gateway.url}/scim`, '') }
}

interface Person {
  readonly title?: string
  readonly active?: string
}

/** The user in each system, or undefined where there is none. */
async function inSystems(client: ScimClient, login: string): Promise<Record<System, Person | undefined>> {
  const shown = async (from: ScimClient): Promise<Person | undefined> => {
    const [user] = (await from.filter('/Users', `userName eq "${login}"`)).body.Resources
    return user && { title: user.title, active: String(user.active) }
  }
  const row = tables.prepare('select title, enabled as active from persons where login = ?').get(login)
  return { people: await shown(client), tables: row && { ...row }, remote: await shown(remote) }
}

const everywhere = (person: Person | undefined) => ({ people: person, tables: person, remote: person })

const outages: Readonly<Record<string, { begin(): void; end(): void }>> = {
  'the table is gone': {
    begin: () => tables.exec('alter table persons rename to persons_away'),
    end: () => tables.exec('alter table persons_away rename to persons'),
  },
  ...Object.fromEntries(
    (
      [
        ['does not answer', 'never'],
        ['loses its answers', 'lost'],
        ['answers 500', { status: 500 }],
        ['answers 429', { status: 429, headers: { 'retry-after': '1' } }],
        ['answers 409', { status: 409 }],
        ['answers 412', { status: 412 }],
      ] as const satisfies readonly (readonly [string, Fault])[]
    ).map(([name, fault]) => [
      `the service ${name}`,
      {
        begin: () => {
          proxy.fault = ({ method }) => (method === 'GET' ? undefined : fault)
        },
        end: () => {
          proxy.fault = () => undefined
        },
      },
    ]),
  ),
}

/** Statuses that say that the change is made, or that there is nothing to change. */
const isOver = (status: number): boolean => status < 300 || status === 404 || status === 409

let count = 0

describe.each<{ order: readonly System[] }>([
  { order: ['people', 'tables', 'remote'] },
  { order: ['remote', 'tables', 'people'] },
])('in the order $order', ({ order }) => {
  let gateway: GatewayProcess
  beforeAll(async () => {
    gateway = await startGatewayProcess({ config: configurationOf(order) })
  })
  afterAll(async () => void (await gateway?.stop()))

  // Every way to fail is tried in one order, and the main ones with every request; conformance tests of the gateway try all.
  const isMain = (name: string): boolean => /table|does not answer|answers 500/.test(name)
  const tried = Object.keys(outages).filter((name) => order[0] === 'people' || isMain(name))

  test.each(tried)('%s: no success is claimed, and all systems agree in the end', async (name) => {
    const outage = outages[name] ?? { begin: () => {}, end: () => {} }
    const client = new ScimClient(`${gateway.url}/scim`, '')
    const login = `user${count++}`
    /** Sends the request during the outage, twice, and then until it is over. */
    const finished = async (send: () => ReturnType<ScimClient['get']>) => {
      outage.begin()
      try {
        const first = await send()
        const isConflict = first.status === 409 && order[0] === 'remote'
        expect(isOver(first.status) && !isConflict, JSON.stringify(first.body)).toBe(
          name.includes('loses') && first.status < 300,
        )
        if (first.status === 503) expect(first.headers.get('retry-after')).toMatch(/^\d+$/)
        const again = await send()
        if (isOver(again.status) && again.status < 300) {
          const { people, tables: hr, remote: there } = await inSystems(client, login)
          expect([hr, there]).toEqual([people, people])
        }
      } finally {
        outage.end()
      }
      await until(async () => isOver((await send()).status), 60_000)
    }
    await finished(() => client.post('/Users', { userName: login, title: 'Dr', active: true }))
    await expect.poll(() => inSystems(client, login)).toEqual(everywhere({ title: 'Dr', active: 'true' }))
    const { id } = (await client.filter('/Users', `userName eq "${login}"`)).body.Resources[0]
    if (isMain(name)) {
      await finished(() => client.patch(`/Users/${id}`, [{ op: 'replace', path: 'active', value: false }]))
      await expect.poll(() => inSystems(client, login)).toEqual(everywhere({ title: 'Dr', active: 'false' }))
      await finished(() => client.put(`/Users/${id}`, { userName: login, title: 'Prof', active: true }))
      await expect.poll(() => inSystems(client, login)).toEqual(everywhere({ title: 'Prof', active: 'true' }))
    }
    await finished(() => client.delete(`/Users/${id}`))
    await expect.poll(() => inSystems(client, login)).toEqual(everywhere(undefined))
    expect(await (await fetch(`${gateway.metricsUrl}/metrics`)).text()).toMatch(
      /^gatehouse_workflow_runs\{state="incident"\} 0$/m,
    )
  })
})

test('a table that is gone is found before the first system changes', async () => {
  const { client } = await start(configurationOf(['people', 'remote', 'tables']))
  const login = `user${count++}`
  const user = { userName: login, title: 'Dr', active: true }
  const table = outages['the table is gone']
  table?.begin()
  try {
    const refused = await client.post('/Users', user)
    expect([refused.status, refused.body.detail]).toEqual([502, 'Target "tables" can\'t be read.'])
    expect((await client.filter('/Users', `userName eq "${login}"`)).body.totalResults).toBe(0)
    expect((await remote.filter('/Users', `userName eq "${login}"`)).body.totalResults).toBe(0)
  } finally {
    table?.end()
  }
  expect((await client.post('/Users', user)).status).toBe(201)
  expect(await inSystems(client, login)).toEqual(everywhere({ title: 'Dr', active: 'true' }))
})

describe('a killed gateway', () => {
  const points = [
    ['after-target-call', 1],
    ['after-target-call', 2],
    ['before-commit', 3],
    ['after-commit', 2],
  ] as const

  test.each(points)('%s, %i: its change is finished at the next start', async (point, nth) => {
    const config = configurationOf(['people', 'tables', 'remote'])
    const dataFolder = mkdtempSync(join(folder, 'data-'))
    const environment = {
      GATEHOUSE_CHAOS_LEASE_MILLIS: '1500',
      GATEHOUSE_CHAOS_POINT: point,
      GATEHOUSE_CHAOS_COUNT: String(nth),
    }
    const dying = await start(config, { dataFolder, environment, crashes: true })
    const login = `user${count++}`
    await expect(dying.client.post('/Users', { userName: login, title: 'Dr', active: true })).rejects.toThrow()
    await until(async () => dying.gateway.process.signalCode === 'SIGKILL', 20_000)
    const { client } = await start(config, { dataFolder })
    await expect
      .poll(() => inSystems(client, login), { timeout: 60_000 })
      .toEqual(everywhere({ title: 'Dr', active: 'true' }))
    // The run may still have its end to commit; then this request is the one that finishes it.
    expect([201, 409]).toContain((await client.post('/Users', { userName: login })).status)
  })
})

test('another replica finishes what a killed one began, and no two requests mix', async () => {
  const config = configurationOf(['people', 'tables', 'remote'])
  const environment = { GATEHOUSE_SECRET_KEY: randomBytes(32).toString('base64') }
  const replica = { args: ['--database', await freshSchema()], environment }
  const [one, two] = [await start(config, replica), await start(config, replica)]
  const login = `user${count++}`
  const created = await one.client.post('/Users', { userName: login, title: 'Dr', active: true })
  expect(created.status).toBe(201)
  const address = `/Users/${created.body.id}`
  proxy.fault = ({ method }) => (method === 'GET' ? undefined : 'never')
  const off = [{ op: 'replace', path: 'active', value: false }]
  expect((await one.client.patch(address, off)).status).toBe(503)
  expect((await two.client.patch(address, off)).status).toBe(503)
  one.gateway.process.kill('SIGKILL')
  proxy.fault = () => undefined
  await until(async () => (await two.client.patch(address, off)).status === 200, 60_000)
  expect(await inSystems(two.client, login)).toEqual(everywhere({ title: 'Dr', active: 'false' }))
  const three = await start(config, replica)
  const titles = Array.from({ length: 10 }, (_, i) => `T${i}`)
  const answers = await Promise.all(
    titles.map((title, i) =>
      (i % 2 === 0 ? two : three).client.patch(address, [{ op: 'replace', path: 'title', value: title }]),
    ),
  )
  expect(answers.filter(({ status }) => status !== 200 && status !== 503).map(({ body }) => body)).toEqual([])
  expect(answers.some(({ status }) => status === 200)).toBe(true)
  const { people, ...others } = await inSystems(two.client, login)
  expect(titles).toContain(people?.title)
  expect(others).toEqual({ tables: people, remote: people })
})
