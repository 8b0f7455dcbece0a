import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'

/** Six have every order of watcher and signal, and two broken changes; `npm run siege` has many. */
const rounds = Number(process.env['SIEGE_ROUNDS'] ?? 6)

let folder: string
let gateway: GatewayProcess
let token: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
  cpSync('examples/quickstart', folder, { recursive: true })
  gateway = await startGatewayProcess({ config: folder })
  token = await gateway.token('--subject', 'idp', '--claim', 'role=crm')
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

const get = (path: string) => fetch(gateway.url + path, { headers: { authorization: `Bearer ${token}` } })
const metric = async (name: string): Promise<number> => {
  const text = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')[1] ?? 0,
  )
}
const applied = () => metric('gatehouse_configuration_reloads_total{outcome="applied"}')
const refused = () => metric('gatehouse_configuration_reloads_total{outcome="refused"}')

/** Like an editor: moves a new file over the old one. */
function edit(file: string, change: (text: string) => string): void {
  const path = join(folder, file)
  writeFileSync(`${path}.new`, change(readFileSync(path, 'utf8')))
  renameSync(`${path}.new`, path)
}

test('a configuration change under load drops no request', async () => {
  let running = true
  const statuses = new Map<number | string, number>()
  const worker = async (path: string): Promise<void> => {
    while (running) {
      const status = await get(path).then(
        (response) => response.arrayBuffer().then(() => response.status),
        (error: unknown) => String(error),
      )
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  const paths = ['/scim/people/Users', '/scim/people/Groups', '/scim/crm/Users/alan', '/scim/crm/Users']
  const workers = paths.map(worker)
  for (let round = 1; round <= rounds / 3; round++) {
    const before = await applied()
    edit('people.yaml', (text) => text.replace(/label: .*person.*/, `label: Create or update a person, round ${round}`))
    await until(async () => (await applied()) > before, 60_000)
  }
  running = false
  await Promise.all(workers)
  expect([...statuses.keys()]).toEqual([200])
  expect(statuses.get(200)).toBeGreaterThan(50)
})

/** Two links that belong together, an application that comes and goes, and on demand an error in one of the links. */
function roundOf(number: number, { isBroken }: { isBroken: boolean }): string {
  const link = (name: string, more = ''): string =>
    `---\napiVersion: openunison.tremolo.io/v1\nkind: PortalUrl\nmetadata: { name: ${name} }\nspec: { label: round ${number}, url: https://${name}.example.com/, org: example, azRules: [{ scope: dn, constraint: "ou=people,o=Tremolo" }]${more} }\n`
  const extra = `---\napiVersion: openunison.tremolo.io/v2\nkind: Application\nmetadata: { name: extra }\nspec: { isApp: false, urls: [{ hosts: ['*'], uri: /extra, azRules: [{ scope: dn, constraint: o=Tremolo }], filterChain: [{ className: filters.DevelopmentIssuer, params: { issuer: "#[GATEHOUSE_URL]/extra" } }] }] }\n`
  return link('one') + link('two', isBroken ? ', color: red' : '') + (number % 2 === 0 ? extra : '')
}

test('changes, broken changes and reloads at the same time as requests leave every answer whole', async () => {
  const ada = await PortalPerson.logIn(gateway, 'ada')
  const file = join(folder, 'rounds.yaml')
  const put = (round: number, isBroken: boolean): void => {
    writeFileSync(`${file}.new`, roundOf(round, { isBroken }))
    renameSync(`${file}.new`, file)
  }
  const [appliedBefore, refusedBefore] = [await applied(), await refused()]
  put(1, false)
  await until(async () => (await applied()) > appliedBefore, 20_000)
  let running = true
  const unexpected: string[] = []
  const seen = new Set<string>()
  const worker = async (look: () => Promise<string | undefined>): Promise<void> => {
    while (running) {
      const problem = await look().catch((error: unknown) => String(error))
      if (problem !== undefined) unexpected.push(problem)
    }
  }
  const expectStatus = (path: string, ...allowed: number[]) =>
    worker(async () => {
      const response = await get(path)
      await response.arrayBuffer()
      seen.add(`${path} ${response.status}`)
      return allowed.includes(response.status) ? undefined : `${path} ${response.status}`
    })
  const extra = '/extra/.well-known/openid-configuration'
  const workers = [
    expectStatus('/scim/people/Users', 200),
    expectStatus('/scim/crm/Users/alan', 200),
    expectStatus(extra, 200, 404),
    worker(async () => {
      const { status, json, text } = await ada.get('/main/urls/org/example')
      if (status !== 200) return `links: ${status} ${text}`
      const labels = Array.from(text.matchAll(/round \d+/g), ([label]) => label)
      return labels.length === 2 && labels[0] === labels[1] ? undefined : `links: ${JSON.stringify(json)}`
    }),
  ]
  const last = rounds
  for (let round = 2; round <= last; round++) {
    const [done, rejected] = [await applied(), await refused()]
    if (round % 3 === 0) {
      put(round, true)
      gateway.process.kill('SIGHUP')
      await until(async () => (await refused()) > rejected, 20_000)
    }
    put(round, false)
    // Sometimes the watcher is first, sometimes the signal, and sometimes they meet.
    await new Promise((resolve) => setTimeout(resolve, (round % 5) * 60))
    gateway.process.kill('SIGHUP')
    await until(async () => (await applied()) > done, 20_000)
  }
  await until(async () => (await ada.get('/main/urls/org/example')).text.includes(`round ${last}`), 20_000)
  await until(async () => seen.has(`${extra} 200`) && seen.has(`${extra} 404`), 20_000)
  running = false
  await Promise.all(workers)
  expect(unexpected).toEqual([])
  expect(await refused()).toBeGreaterThan(refusedBefore)
  expect((await get(extra)).status).toBe(200)
  // The last configuration stays: nothing that was read earlier replaces it.
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  expect((await ada.get('/main/urls/org/example')).text).toContain(`round ${last}`)
  expect(await metric('gatehouse_configuration_current')).toBe(1)
  rmSync(file)
  await until(async () => (await get(extra)).status === 404, 20_000)
}, 240_000)

test('a broken change does not affect the running configuration and is reported with its position', async () => {
  const before = await refused()
  edit('crm.yaml', (text) => text.replace('workflowName: crm-sync', 'workflowName: crm-snyc'))
  await until(async () => (await refused()) > before, 10_000)
  expect((await get('/scim/crm/Users/alan')).status).toBe(200)
  expect(await metric('gatehouse_configuration_current')).toBe(0)
  await until(async () => /crm\.yaml:\d+:\d+: .*crm-snyc.*did you mean/.test(gateway.output()), 5_000)
  expect(
    gateway
      .output()
      .split('\n')
      .filter((line) => line.includes('crm-snyc') && line.includes('"stack"')),
  ).toEqual([])
})

test('the newest configuration takes effect once it is fixed', async () => {
  const before = await applied()
  edit('crm.yaml', (text) =>
    text.replace('workflowName: crm-snyc', 'workflowName: crm-sync').replace('(role=crm)', '(role=nobody)'),
  )
  await until(async () => (await applied()) > before, 10_000)
  expect(await metric('gatehouse_configuration_current')).toBe(1)
  expect((await get('/scim/crm/Users/alan')).status).toBe(403)
  expect((await get('/scim/people/Users')).status).toBe(200)
})

test('a target that cannot be created does not affect the running configuration either', async () => {
  const before = await refused()
  edit('crm-target.js', (text) => `${text}\nthrow new Error('cannot start')\n`)
  gateway.process.kill('SIGHUP')
  await until(async () => (await refused()) > before, 10_000)
  expect((await get('/scim/people/Users')).status).toBe(200)
})
