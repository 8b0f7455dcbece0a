import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { runCommand } from '#testing/gateway/command.ts'

/** Every one of them is in the configuration, the environment, the secrets, the log or the metrics. */
const planted = {
  environment: 'planted-in-environment-1x',
  variable: 'planted-by-name-of-variable-2x',
  file: 'planted-in-secret-file-3x',
  unused: 'planted-in-unused-file-4x',
  literal: 'planted-as-literal-5x',
  listed: 'planted-in-list-6x',
  address: 'planted-in-address-7x',
  header: 'planted-in-header-8x',
  assigned: 'planted-in-script-9x',
  database: 'planted-in-database-url-10x',
  logged: 'planted-in-log-field-11x',
  query: 'planted-in-log-query-12x',
  label: 'planted-in-metric-13x',
  pem: 'plantedInPrivateKeyPlantedInPrivateKeyPlanted14x',
  webhook: 'planted-in-path-15x',
  signature: 'planted-in-query-16x',
  split: 'plantedInSplitKeyPlantedInSplitKeyPlantedInSpl17x',
  annotation: 'planted-in-annotation-18x',
} as const

const configuration = `apiVersion: gatehouse.dev/v1
kind: Target
metadata: { name: crm }
spec:
  className: targets.Scim
  params:
    url: https://caller:${planted.address}@crm.example.com/scim
    password: ${planted.literal}
    note: '#[PLANTED]'
    header: 'Authorization: Bearer ${planted.header}'
  secretParams: [{ name: token, secretName: crm, secretKey: token }]
---
apiVersion: gatehouse.dev/v1
kind: Target
metadata:
  name: listed
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"spec":{"params":[{"name":"clientSecret","value":"${planted.annotation}"}]}}
spec:
  className: targets.Scim
  params:
    - { name: clientSecret, value: ${planted.listed} }
    - { name: notify, value: 'https://hooks.example.com/services/T0/B0/${planted.webhook}' }
    - { name: call, value: 'https://flow.example.com/invoke?api-version=1&sig=${planted.signature}' }
    - { name: line1, value: '-----BEGIN PRIVATE KEY-----' }
    - { name: line2, value: ${planted.split} }
    - { name: line3, value: '-----END PRIVATE KEY-----' }
---
apiVersion: gatehouse.dev/v1
kind: JavaScript
metadata: { name: script }
spec:
  source: |
    var apiKey = "${planted.assigned}";
`

const logged = [
  JSON.stringify({ level: 'info', msg: 'called', nested: { token: planted.logged }, user: 'ada' }),
  JSON.stringify({ level: 'warn', msg: `refused ${planted.file}, ${planted.literal} and ${planted.variable}` }),
  JSON.stringify({ level: 'warn', msg: `GET /callback?access_token=${planted.query}&state=1` }),
  `login with ${planted.database}`,
  `plain text with https://someone:${planted.address}@crm.example.com`,
  JSON.stringify({ level: 'warn', msg: `POST /services/T0/B0/${planted.webhook} answered 404`, sent: planted.split }),
  JSON.stringify({ level: 'warn', msg: `https://flow.example.com/invoke?sig=${planted.signature} answered 404` }),
  `-----BEGIN PRIVATE KEY-----`,
  planted.pem,
  `-----END PRIVATE KEY-----`,
]

function installation() {
  const folder = temporaryFolder()
  const [config, data, log] = [join(folder, 'config'), join(folder, 'data'), join(folder, 'gatehouse.log')]
  mkdirSync(join(config, 'secrets', 'crm'), { recursive: true })
  mkdirSync(data)
  writeFileSync(join(config, 'all.yaml'), configuration)
  writeFileSync(join(config, 'secrets', 'crm', 'token'), `${planted.file}\n`)
  writeFileSync(join(config, 'secrets', 'crm', 'old'), planted.unused)
  writeFileSync(log, logged.join('\n'))
  for (const [name, value] of [
    ['PLANTED', planted.environment],
    ['CRM_PASSWORD', planted.variable],
    ['GATEHOUSE_SECRET_KEY', Buffer.alloc(32, 7).toString('base64')],
    ['GATEHOUSE_URL', 'https://portal.example.com'],
  ] as const) {
    vi.stubEnv(name, value)
  }
  onTestFinished(() => void vi.unstubAllEnvs())
  return { folder, config, data, log, file: join(folder, 'bundle.tar.gz') }
}

/** As GNU tar unpacks it. */
function unpack(file: string): ReadonlyMap<string, string> {
  const folder = temporaryFolder()
  execFileSync('tar', ['-xzf', file, '-C', folder])
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

test('a bundle has what a helper needs, and none of the planted secrets', async () => {
  const { config, data, log, file } = installation()
  const gateway = createServer((request, response) => {
    response.end(request.url === '/ready' ? '{"status":"ok"}' : `gatehouse_x{secret="${planted.label}",a="b"} 1\n`)
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void gateway.close())
  await once(gateway, 'listening')
  const { code, stdout, stderr } = await runCommand([
    ...['support-bundle', file, '--config', config, '--data', data, '--log', log],
    ...['--metrics', `127.0.0.1:${(gateway.address() as AddressInfo).port}`],
    ...['--database', `postgres://gatehouse:${planted.database}@127.0.0.1:1,127.0.0.1:2/none`],
  ])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain(`Wrote ${file}`)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const files = unpack(file)
  const everything = [...files.values(), stdout].join('\n')
  for (const [where, secret] of Object.entries(planted)) {
    expect([where, everything.includes(secret)]).toEqual([where, false])
    const encoded = Buffer.from(secret).toString('base64').slice(0, 20)
    expect([where, everything.includes(encoded)]).toEqual([where, false])
  }
  expect(everything).not.toContain(Buffer.alloc(32, 7).toString('base64'))
  const parts = [
    'check.json',
    'configuration.json',
    'doctor.json',
    'log.txt',
    'metrics.txt',
    'ready.json',
    'versions.json',
  ]
  expect([...files.keys()].sort()).toEqual([...parts, 'manifest.json'].sort())
  const read = (name: string) => JSON.parse(files.get(name) ?? '')
  expect(read('manifest.json')).toMatchObject({ missing: [], files: expect.any(Array) })
  // What remains is of use.
  expect(read('versions.json')).toMatchObject({
    node: process.versions.node,
    variables: expect.arrayContaining(['GATEHOUSE_URL']),
  })
  expect(read('configuration.json').objects[0]).toMatchObject({
    kind: 'Target',
    object: 'crm',
    value: {
      spec: {
        params: { note: '#[PLANTED]', password: '[redacted]' },
        secretParams: [{ name: 'token', secretName: 'crm', secretKey: 'token' }],
      },
    },
  })
  expect(files.get('log.txt')).toContain('"user":"ada"')
  expect(files.get('metrics.txt')).toContain('a="b"')
  expect(read('doctor.json').findings).toEqual(expect.arrayContaining([expect.objectContaining({ probe: 'database' })]))
  expect(read('check.json')).toMatchObject({ exitCode: 1, valid: false })
})

test('the manifest says what could not be read; the rest is written', async () => {
  const { folder, data, file } = installation()
  const { code, stdout } = await runCommand([
    ...['support-bundle', file, '--config', join(folder, 'absent'), '--data', data],
    ...['--metrics', '127.0.0.1:1', '--log', join(folder, 'absent.log'), '--output', 'json'],
  ])
  expect(code).toBe(0)
  const manifest = JSON.parse(unpack(file).get('manifest.json') ?? '')
  expect(manifest.missing).toMatchObject([
    { file: 'ready.json', reason: expect.stringContaining('no gateway answers at http://127.0.0.1:1/ready') },
    { file: 'metrics.txt' },
    { file: 'log.txt', reason: `${join(folder, 'absent.log')} does not exist` },
  ])
  expect(JSON.parse(stdout)).toMatchObject({ file, missing: manifest.missing })
})

test('a log that is a named pipe is not waited for', async () => {
  const { folder, config, data, file } = installation()
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  await runCommand(['support-bundle', file, '--config', config, '--data', data, '--metrics', 'off', '--log', pipe])
  const { missing } = JSON.parse(unpack(file).get('manifest.json') ?? '')
  expect(missing).toContainEqual(
    expect.objectContaining({ file: 'log.txt', reason: `${pipe} cannot be read: it is not a file` }),
  )
})

test('an existing file is not replaced', async () => {
  const { config, data, file } = installation()
  writeFileSync(file, 'mine')
  const args = ['support-bundle', file, '--config', config, '--data', data, '--metrics', 'off']
  expect(await runCommand(args)).toMatchObject({ code: 1, stderr: expect.stringContaining(`${file} exists`) })
  expect(readFileSync(file, 'utf8')).toBe('mine')
})

test.each([
  [['--log', 'a', '--journal', 'b'], '--log and --journal cannot be combined'],
  [['--journal', '--since'], 'journal'],
])('%j is wrong usage', async (args, message) => {
  const { code, stderr } = await runCommand(['support-bundle', '--config', 'config', ...args])
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
})
