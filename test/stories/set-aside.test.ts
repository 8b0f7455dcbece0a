import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'

let folder: string
let gateway: GatewayProcess
let token: string

const issuer = 'filterChain: [{ className: filters.DevelopmentIssuer, params: { issuer: "#[GATEHOUSE_URL]/wide" } }]'
const anyone = 'azRules: [{ scope: dn, constraint: o=Tremolo }]'
const application = (name: string, uri: string, more = ''): string =>
  `---\napiVersion: openunison.tremolo.io/v2\nkind: Application\nmetadata: { name: ${name} }\nspec: { isApp: false, urls: [{ hosts: ['*'], uri: ${uri}, ${anyone}, ${more}${issuer} }] }\n`

const endpoint =
  'audience: cloud, subjectIssuers: [builds], azRules: [{ scope: filter, constraint: (sub=repo) }], subject: "${token_sub}"'

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
  cpSync('examples/quickstart', folder, { recursive: true })
  // The gateway for the CRM needs this workflow; the wider URLs answer everyone.
  edit('crm.yaml', (text) => text.replace('workflowName: crm-sync', 'workflowName: crm-snyc'))
  writeFileSync(
    join(folder, 'more.yaml'),
    `---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: sso }
spec: { className: com.example.SingleSignOn, uri: /auth/sso }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: staff }
spec: { level: 20, authMechs: [{ name: sso, required: required }] }
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: plug-in }
spec: { className: com.tremolosecurity.provisioning.core.providers.JavaScriptTarget, params: { module: plug-in.js } }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: join }
spec: { tasks: [{ taskType: provision, sync: true, target: plug-in, attributes: [mail] }] }
${application('guarded', '/wide/guarded', 'authChain: staff, ')}${application('wide', '/wide')}${application('scim', '/scim')}`,
  )
  edit(
    'values.yaml',
    (text) => `${text}sts:
  issuers: [{ name: builds, issuer: https://ci.example.com, audience: gatehouse }]
  endpoints:
    - { name: good, path: /sts/good, ${endpoint}, issuer: { host: good.example.com } }
    - { name: bad, path: /sts/bad, ${endpoint}, issuer: { host: bad.example.com }, ttlSeconds: 1 }
`,
  )
  const code = readFileSync(join(folder, 'crm-target.js'), 'utf8')
  writeFileSync(join(folder, 'plug-in.js'), `${code}\nthrow new Error('no licence')\n`)
  writeFileSync(join(folder, 'broken.yaml'), 'apiVersion: openunison.tremolo.io/v1\nkind: Org\nmetadata: {{\n')
  gateway = await startGatewayProcess({ config: folder })
  token = await gateway.token('--subject', 'idp', '--claim', 'role=crm')
}, 120_000)
afterAll(async () => {
  await gateway?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Like an editor: moves a new file over the old one. */
function edit(file: string, change: (text: string) => string): void {
  const path = join(folder, file)
  writeFileSync(`${path}.new`, change(readFileSync(path, 'utf8')))
  renameSync(`${path}.new`, path)
}

const get = (path: string) => fetch(gateway.url + path, { headers: { authorization: `Bearer ${token}` } })
const statusOf = async (path: string): Promise<number> => (await get(path)).status
const documents = '.well-known/openid-configuration'
const metric = async (name: string): Promise<number> => {
  const text = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
  const line = text.split('\n').find((one) => one.startsWith(`${name} `))
  return Number(line?.split(' ')[1] ?? 0)
}
const applied = () => metric('gatehouse_configuration_reloads_total{outcome="applied"}')
const refused = () => metric('gatehouse_configuration_reloads_total{outcome="refused"}')
const setAside = (kind: string) => metric(`gatehouse_configuration_objects{kind="${kind}",state="set_aside"}`)

test('what has no errors is served', async () => {
  expect(await statusOf('/scim/people/Users')).toBe(200)
  expect(await statusOf(`/wide/${documents}`)).toBe(200)
})

test('an application that is set aside is not reachable, and no wider URL answers for it', async () => {
  for (const path of ['/scim/crm/Users', '/scim/crm', `/wide/guarded/${documents}`, '/wide/guarded']) {
    for (const headers of [{}, { authorization: `Bearer ${token}` }]) {
      const answer = await fetch(gateway.url + path, { headers })
      expect([path, answer.status]).toEqual([path, 503])
      const text = 'This application is not available.'
      const asScim = { schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'], status: '503', detail: text }
      const asJson = { errors: [text], code: 'NOT_AVAILABLE', requestId: expect.any(String) }
      expect(await answer.json()).toEqual(path.startsWith('/scim/') ? asScim : asJson)
    }
  }
  const write = await fetch(`${gateway.url}/scim/crm/Users`, { method: 'POST', body: '{}' })
  expect(write.status).toBe(503)
  expect(await statusOf('/auth/sso')).toBe(404)
})

test('one endpoint of the token service that is set aside does not take the others with it', async () => {
  expect(await statusOf('/sts/good/issuer-docs')).toBe(200)
  const exchange = (name: string) =>
    fetch(`${gateway.url}/sts/${name}/token`, { method: 'POST', body: new URLSearchParams({ grant_type: 'x' }) })
  const answers = await Promise.all(
    ['good', 'bad'].map(async (name) => {
      const answer = await exchange(name)
      return [answer.status, (await answer.json()) as unknown]
    }),
  )
  expect(answers).toEqual([
    [400, expect.objectContaining({ error: 'unsupported_grant_type' })],
    [503, { error: 'temporarily_unavailable', error_description: 'This application is not available.' }],
  ])
  expect(await statusOf('/sts/bad/issuer-docs')).toBe(503)
})

test('log, metrics and health name each object with its cause, and the gateway is ready', async () => {
  await until(async () => gateway.output().includes('some objects are set aside'), 10_000)
  const lines = gateway
    .output()
    .split('\n')
    .filter((line) => line.includes('object set aside'))
    .map((line) => JSON.parse(line) as { object: string; at: string; reason: string })
  expect(lines.map(({ object }) => object).sort()).toEqual([
    'Application "guarded"',
    'Application "scim-crm"',
    'AuthenticationChain "staff"',
    'AuthenticationMechanism "sso"',
    'Org broken.yaml',
    'Target "plug-in"',
    'Workflow "join"',
    'token endpoint "bad"',
  ])
  // Its YAML is in order, but the module could not be created.
  expect(lines.find(({ object }) => object.startsWith('Workflow'))?.reason).toMatch(
    /^Target "plug-in" \(more\.yaml:\d+:\d+\): cannot be created: .*no licence/,
  )
  expect(lines.find(({ object }) => object.includes('guarded'))).toMatchObject({
    at: expect.stringMatching(/^more\.yaml:\d+:\d+$/),
    reason: expect.stringMatching(/^AuthenticationMechanism "sso" \(more\.yaml:5:9\): spec\.className: /),
  })
  expect([await setAside('Application'), await setAside('AuthenticationChain'), await setAside('Workflow')]).toEqual([
    2, 1, 1,
  ])
  const health = await (await fetch(`${gateway.metricsUrl}/health`)).json()
  expect(health).toMatchObject({ status: 'degraded', configuration: { setAside: 8 } })
  expect((await fetch(`${gateway.url}/ready`)).status).toBe(200)
})

test('a change with a new broken object is served without it', async () => {
  const before = await applied()
  writeFileSync(
    join(folder, 'new.yaml'),
    application('another', '/wide/another', 'authChain: none, ') + application('late', '/late'),
  )
  await until(async () => (await applied()) > before, 20_000)
  expect(await statusOf(`/late/${documents}`)).toBe(200)
  expect(await statusOf('/wide/another')).toBe(503)
  expect(await setAside('Application')).toBe(3)
  expect(await metric('gatehouse_configuration_current')).toBe(1)
})

test('a change that would set aside an object that is served changes nothing', async () => {
  const before = await refused()
  edit('new.yaml', (text) =>
    text.replace('uri: /late,', 'uri: /late, color: red,').replace('/wide/another', '/elsewhere'),
  )
  await until(async () => (await refused()) > before, 20_000)
  expect(await statusOf(`/late/${documents}`)).toBe(200)
  expect(await statusOf('/wide/another')).toBe(503)
  expect(await metric('gatehouse_configuration_current')).toBe(0)
  await until(
    async () => gateway.output().includes('objects that are served would be set aside: Application \\"late\\"'),
    10_000,
  )
  // Its file can't be read, so that the object is not removed.
  const again = await refused()
  writeFileSync(join(folder, 'new.yaml'), '- nothing\n')
  await until(async () => (await refused()) > again, 20_000)
  expect(await statusOf(`/late/${documents}`)).toBe(200)
})

test('an object that is fixed is served', async () => {
  const before = await applied()
  rmSync(join(folder, 'new.yaml'))
  rmSync(join(folder, 'broken.yaml'))
  edit('crm.yaml', (text) => text.replace('workflowName: crm-snyc', 'workflowName: crm-sync'))
  await until(async () => (await applied()) > before, 20_000)
  expect(await statusOf('/scim/crm/Users')).toBe(200)
  expect(await statusOf('/late')).toBe(404)
  expect(await setAside('Application')).toBe(1)
  expect(await metric('gatehouse_configuration_current')).toBe(1)
})

test('with --strict it does not start, and prints every problem', async () => {
  const failure = (options: object) =>
    startGatewayProcess({ config: folder, ...options }).then(
      async (started) => `started ${await started.stop()}`,
      (error: Error) => error.message,
    )
  const text = await failure({ args: ['--strict'] })
  expect(text).toMatch(/^gatehouse ended with 1:/)
  expect(text).toContain('more.yaml:5:9: spec.className: ')
  expect(text).toMatch(/the configuration has (an error|\d+ errors), which --strict does not allow/)
  expect(await failure({ environment: { GATEHOUSE_STRICT: 'true' } })).toMatch(/^gatehouse ended with 1:/)
}, 120_000)
