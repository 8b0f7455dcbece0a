import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { ScimClient } from '#testing/scim/scim-client.ts'

/** A SCIM gateway in front of an application's table, which is missing when the gateway starts. */
let gateway: GatewayProcess
let client: ScimClient
let tables: DatabaseSync
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-creation-'))
const config = mkdtempSync(join(folder, 'config-'))

const configuration = (title: string): string => `
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: write }
spec: { description: ${title}, tasks: [{ taskType: provision, target: tables, sync: true }] }
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
    - { name: column.userName, value: login }
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
          params: { mapping: scim, lookupTarget: tables, workflowName: write }
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: wrong }
spec: { urls: [{ hosts: ['*'], uri: /wrong, color: red, azRules: [], filterChain: [{ className: filters.ScimGateway }] }] }
`

/** Like an editor: moves a new file over the old one. */
function write(text: string): void {
  writeFileSync(join(config, 'new'), text)
  renameSync(join(config, 'new'), join(config, 'gateway.yaml'))
}

beforeAll(async () => {
  tables = new DatabaseSync(join(folder, 'hr.db'))
  write(configuration('first'))
  gateway = await startGatewayProcess({ config })
  client = new ScimClient(`${gateway.url}/scim`, '')
}, 60_000)
afterAll(async () => {
  await gateway?.stop()
  tables?.close()
  rmSync(folder, { recursive: true, force: true })
})

const health = async (): Promise<string> => await (await fetch(`${gateway.metricsUrl}/health`)).text()
const metric = async (name: string): Promise<number> => {
  const text = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
  const line = text.split('\n').find((one) => one.startsWith(`${name} `))
  return Number(line?.split(' ')[1] ?? 0)
}
const applied = () => metric('gatehouse_configuration_reloads_total{outcome="applied"}')
const refused = () => metric('gatehouse_configuration_reloads_total{outcome="refused"}')
const logged = (message: string) =>
  gateway
    .output()
    .split('\n')
    .filter((line) => line.includes(message)).length

test('a gateway that starts without the table says so as SCIM, and when to come back', async () => {
  const answer = await client.get('/Users')
  expect(answer.status).toBe(503)
  expect(answer.headers.get('content-type')).toMatch(/^application\/scim\+json/)
  expect(answer.body).toEqual({
    schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
    status: '503',
    detail: 'This application is not available.',
  })
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await health()).toContain(
    'there is no table \\"persons\\" that this account may see (the gateway tries again)',
  )
})

test('an application with an error of its own has the format of its API, and no time to come back', async () => {
  const answer = await new ScimClient(`${gateway.url}/wrong`, '').get('/Users')
  expect([answer.status, answer.body.schemas]).toEqual([503, ['urn:ietf:params:scim:api:messages:2.0:Error']])
  expect(answer.headers.has('retry-after')).toBe(false)
})

test('it is tried again, and is served once the table is there', async () => {
  await until(async () => logged('still not created; the gateway tries again') >= 2, 60_000)
  // Attempts that change nothing replace nothing.
  expect(await applied()).toBe(0)
  const wrong = join(config, 'values.yaml')
  writeFileSync(wrong, 'directoryRoot: nonsense\n')
  await until(async () => (await refused()) === 1, 60_000)
  tables.exec('create table persons (login text not null primary key)')
  await until(async () => (await client.get('/Users')).status === 200, 60_000)
  expect(await applied()).toBe(1)
  // The change with an error is still refused.
  await until(async () => (await refused()) === 2, 60_000)
  expect(await metric('gatehouse_configuration_current')).toBe(0)
  rmSync(wrong)
  await until(async () => (await metric('gatehouse_configuration_current')) === 1, 60_000)
  expect(await health()).toContain('"setAside":1')
  await until(async () => logged('another attempt to create objects was applied') === 1, 60_000)
})

test('a change that was refused because of an outage is applied after it', async () => {
  const before = await refused()
  tables.exec('alter table persons rename to away')
  write(configuration('second'))
  await until(async () => (await refused()) === before + 1, 60_000)
  expect(await metric('gatehouse_configuration_current')).toBe(0)
  tables.exec('alter table away rename to persons')
  await until(async () => (await metric('gatehouse_configuration_current')) === 1, 60_000)
  expect((await client.get('/Users')).status).toBe(200)
  // It is counted once.
  expect(await refused()).toBe(before + 1)
})
