import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway-process.ts'

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
  for (let round = 1; round <= 4; round++) {
    const before = await applied()
    edit('people.yaml', (text) => text.replace(/label: .*person.*/, `label: Create or update a person, round ${round}`))
    await until(async () => (await applied()) > before, 10_000)
  }
  running = false
  await Promise.all(workers)
  expect([...statuses.keys()]).toEqual([200])
  expect(statuses.get(200)).toBeGreaterThan(50)
})

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
