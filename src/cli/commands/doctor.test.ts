import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createServer as createSocketServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { clockFinding, type Diagnosis, runProbes } from '#cli/doctor/diagnosis.ts'
import { nodeFinding } from '#cli/doctor/machine-probes.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { damageTable } from '#testing/databases/damage.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { newRun } from '#testing/databases/workflow-stores.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { freshCertificate } from '#testing/gateway/test-certificates.ts'
import { doctorCommand } from './doctor.ts'

beforeEach(() => {
  for (const name of ['GATEHOUSE_URL', 'GATEHOUSE_DATABASE', 'GATEHOUSE_SECRET_KEY']) vi.stubEnv(name, undefined)
})
afterEach(() => {
  vi.unstubAllEnvs()
})

const object = (kind: string, name: string, spec: object): string =>
  `---\n${JSON.stringify({ apiVersion: 'openunison.tremolo.io/v1', kind, metadata: { name }, spec })}\n`

/** A configuration folder with these documents. */
function configFolder(yaml = object('Target', 'people', { className: 'targets.Database', params: [] })): string {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'all.yaml'), yaml)
  return folder
}

async function examine(config: string, ...args: readonly string[]) {
  const [output, errors]: [string[], string[]] = [[], []]
  const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
  const data = args.includes('--data') ? [] : ['--data', join(config, 'data')]
  const code = await doctorCommand(['--config', config, '--output', 'json', ...data, ...args], io)
  const found: Diagnosis[] = output.length === 0 ? [] : JSON.parse(output.join('\n')).findings
  return {
    code,
    errors,
    found,
    of: (probe: string) => found.filter((one) => one.probe === probe),
    text: output.join('\n'),
  }
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void

async function issuerSite(answer: (url: string) => Answer): Promise<string> {
  let url = ''
  const server = createServer((request, response) => answer(url)(request, response))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return url
}

const trusting = (issuer: string): string =>
  object('AuthenticationMechanism', 'oidc', { className: 'auth.OpenIDConnect', uri: '/auth/oidc' }) +
  object('AuthenticationChain', 'login', {
    level: 20,
    root: 'o=Tremolo',
    authMechs: [{ name: 'oidc', required: 'required', params: { issuer, clientid: 'gate', noMatchOU: 'outside' } }],
  })

const unwritable = (seen: RegExp) => ({
  seen: expect.stringMatching(seen),
  advice: 'Let the user of the gateway write the file and its folder, or choose another file.',
})

test('a file that anchors or copies of the audit cannot be written to is a problem, and is not created', async () => {
  const copy = (kind: string, name: string, className: string, params: object): string =>
    object(kind, name, { className, params })
  const config = configFolder(
    copy('AuditAnchor', 'anchors', 'auditSinks.File', { file: '../taken/anchors.jsonl' }) +
      copy('AuditSink', 'copy', 'auditSinks.File', { file: '../foreign.jsonl' }) +
      copy('AuditSink', 'fine', 'auditSinks.File', { file: '../new/folder/audit.jsonl' }) +
      copy('AuditSink', 'siem', 'auditSinks.Syslog', { host: '127.0.0.1', security: 'none' }),
  )
  writeFileSync(join(config, 'taken'), '')
  writeFileSync(join(config, 'foreign.jsonl'), 'not an audit\n')
  const { code, of } = await examine(config)
  expect(code).toBe(1)
  expect(of('audit')).toEqual([
    {
      probe: 'audit',
      at: 'AuditSink copy',
      level: 'problem',
      ...unwritable(/foreign.jsonl was not written by an audit sink/),
    },
    { probe: 'audit', at: 'AuditSink fine', level: 'ok', seen: 'the file can be written' },
    { probe: 'audit', at: 'AuditAnchor anchors', level: 'problem', ...unwritable(/taken/) },
  ])
  expect(readdirSync(config).sort()).toEqual(['all.yaml', 'foreign.jsonl', 'taken'])
})

test('a gateway that has not started yet has no problem, and nothing is created', async () => {
  const config = configFolder()
  const { code, found, of } = await examine(config)
  // The machine that runs the test may have problems of its own.
  const machine = ['open files', 'memory', 'disk']
  expect(found.filter(({ level, probe }) => level === 'problem' && !machine.includes(probe))).toEqual([])
  expect(code).toBe(found.some(({ level }) => level === 'problem') ? 1 : 0)
  const probes = ['configuration', 'node', 'open files', 'memory', 'disk', 'database', 'keys', 'secret files']
  expect([...new Set(found.map(({ probe }) => probe))].sort()).toEqual(probes.sort())
  expect(of('database')).toMatchObject([{ seen: 'the file does not exist yet: serve creates it' }])
  expect(readdirSync(config)).toEqual(['all.yaml'])
})

test('as text, a line has the level, what was seen and what to do', async () => {
  const output: string[] = []
  const config = configFolder('kind: [')
  const io = { stdout: (line: string) => void output.push(line), stderr: () => {} }
  expect(await doctorCommand(['--config', config, '--data', join(config, 'data')], io)).toBe(1)
  expect(output[0]).toMatch(/^PROBLEM configuration .*all\.yaml:1:.* its own error .*Correct it\. Until then/)
  expect(output).toContainEqual(expect.stringMatching(/^OK {6}node: Node\.js \d+/))
})

test('a database is read without being changed, and unfinished changes are counted', async () => {
  const data = temporaryFolder()
  chmodSync(data, 0o700)
  const storage = openStorage({ dataFolder: data, clock: systemClock, log: silentLogger })
  await storage.ready()
  const { of } = await examine(configFolder(), '--data', data)
  expect(of('database')).toMatchObject([
    { level: 'ok', seen: expect.stringMatching(/^SQLite \d/) },
    { level: 'ok', seen: 'schema 0001_initial, the newest' },
  ])
  await storage.runs.start(newRun('1', { touched: true }))
  await storage.runs.start(newRun('2', { touched: true, resource: 'user 2' }))
  await storage.close()
  expect((await examine(configFolder(), '--data', data)).of('database')[2]).toMatchObject({
    level: 'warning',
    seen: '1 change has failed part way',
  })
  writeFileSync(join(data, 'gatehouse.db'), 'this is not a database, and long enough to have a header'.repeat(20))
  const broken = await examine(configFolder(), '--data', data)
  expect(broken.code).toBe(1)
  expect(broken.of('database')).toMatchObject([{ level: 'problem', seen: expect.stringContaining('not a database') }])
})

test('a PostgreSQL at a wrong port is a problem, and its password is not shown', async () => {
  const url = `postgres://gatehouse:hunter2@127.0.0.1:${await freePort()}/gatehouse`
  const { code, of, text } = await examine(configFolder(), '--database', url)
  expect(code).toBe(1)
  expect(of('database')).toMatchObject([
    { level: 'problem', at: expect.stringMatching(/^127\.0\.0\.1:\d+\/gatehouse$/) },
  ])
  expect(text).not.toContain('hunter2')
  const hosts = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`] as const
  const several = await examine(configFolder(), '--database', `postgres://gate:hunter2@${hosts.join(',')}/gatehouse`)
  expect(several.of('database')).toMatchObject([
    {
      level: 'problem',
      at: `${hosts.join(',')}/gatehouse`,
      seen: expect.stringMatching(new RegExp(`${hosts[0]}: .*ECONNREFUSED.*${hosts[1]}: .*ECONNREFUSED`)),
    },
  ])
  expect(several.text).not.toContain('hunter2')
})

test('a served certificate that expired or is not trusted is a problem', async () => {
  const tlsAt = async (at: Date): Promise<string> => {
    const { certificate, privateKey } = freshCertificate(at)
    const server = createTlsServer({ cert: certificate, key: privateKey })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    onTestFinished(() => void server.close())
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  vi.stubEnv('GATEHOUSE_URL', await tlsAt(new Date(Date.now() - 100 * 86_400_000)))
  const expired = await examine(configFolder())
  expect([expired.code, expired.of('tls')]).toMatchObject([
    1,
    [{ level: 'problem', seen: expect.stringMatching(/expired on 20/) }],
  ])
  vi.stubEnv('GATEHOUSE_URL', await tlsAt(new Date()))
  expect((await examine(configFolder())).of('tls')).toMatchObject([
    {
      level: 'problem',
      seen: expect.stringContaining('clients reject the certificate'),
      advice: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
    },
  ])
  vi.stubEnv('GATEHOUSE_URL', `https://127.0.0.1:${await freePort()}`)
  const absent = await examine(configFolder())
  expect([absent.code, absent.of('tls')]).toMatchObject([
    0,
    [{ level: 'warning', seen: expect.stringContaining('ECONNREFUSED') }],
  ])
})

test('the files of the listener are checked for expiry, key and name', async () => {
  const folder = temporaryFolder()
  const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  const write = (at: Date): void => {
    const { certificate, privateKey } = freshCertificate(at)
    writeFileSync(cert, certificate)
    writeFileSync(key, privateKey, { mode: 0o600 })
  }
  const files = ['--tls-cert', cert, '--tls-key', key]
  write(new Date())
  expect((await examine(configFolder(), ...files)).of('certificate')).toMatchObject([{ level: 'ok' }])
  vi.stubEnv('GATEHOUSE_URL', 'https://gateway.invalid')
  const { of } = await examine(configFolder(), ...files)
  expect(of('certificate')).toMatchObject([{ level: 'problem', seen: 'it is not for gateway.invalid' }])
  expect(of('dns')).toMatchObject([{ level: 'problem', at: 'gateway.invalid' }])
  write(new Date(Date.now() - 100 * 86_400_000))
  expect((await examine(configFolder(), ...files)).of('certificate')).toMatchObject([
    { level: 'problem', seen: expect.stringContaining('expired on') },
  ])
})

test('an issuer is asked for its document, keys and time', async () => {
  const good = await issuerSite((url) => (request, response) => {
    const isKeys = request.url === '/keys'
    response.end(JSON.stringify(isKeys ? { keys: [{ kty: 'OKP' }] } : { issuer: url, jwks_uri: `${url}/keys` }))
  })
  expect((await examine(configFolder(trusting(good)))).of('issuer')).toMatchObject([
    { level: 'ok', seen: expect.stringMatching(/with 1 key$/) },
    { level: 'ok', seen: expect.stringContaining('the clock agrees') },
  ])
  const odd = await issuerSite((url) => (request, response) => {
    response.setHeader('date', new Date(Date.now() - 600_000).toUTCString())
    response.end(
      JSON.stringify(request.url === '/keys' ? { keys: [] } : { issuer: 'https://other', jwks_uri: `${url}/keys` }),
    )
  })
  expect((await examine(configFolder(trusting(odd)))).of('issuer')).toMatchObject([
    { level: 'problem', seen: expect.stringContaining('names the issuer "https://other"') },
    { level: 'problem', seen: expect.stringContaining('has no keys') },
    {
      level: 'problem',
      seen: expect.stringMatching(/the clock is (?:600|599|598) seconds ahead of that of the issuer/),
    },
  ])
})

test('an issuer with a certificate of an own authority: what to set, and nothing about Node.js', async () => {
  const { certificate, privateKey } = freshCertificate()
  const server = createTlsServer({ cert: certificate, key: privateKey })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const [found] = (await examine(configFolder(trusting(issuer)), '--timeout', '60')).of('issuer')
  expect(found).toMatchObject({ level: 'problem', advice: expect.stringContaining('set NODE_EXTRA_CA_CERTS') })
  expect(found?.seen).toMatch(/certificate/)
  expect(found?.seen).not.toContain('--use-system-ca')
})

test('the name that authenticator apps show is not an issuer', async () => {
  const totp =
    object('AuthenticationMechanism', 'totp', { className: 'auth.Totp', uri: '/auth/totp' }) +
    object('AuthenticationChain', 'login', {
      level: 20,
      root: 'o=Tremolo',
      authMechs: [{ name: 'totp', required: 'required', params: { issuer: 'idm.example.com' } }],
    })
  const { of } = await examine(configFolder(totp))
  expect(of('configuration')).toMatchObject([{ level: 'ok' }])
  expect(of('issuer')).toEqual([])
})

test('an issuer that does not answer, or never ends, is a problem within the time limit', async () => {
  const closed = await examine(configFolder(trusting(`http://127.0.0.1:${await freePort()}`)))
  expect([closed.code, closed.of('issuer')]).toMatchObject([
    1,
    [{ level: 'problem', seen: expect.stringContaining('ECONNREFUSED') }],
  ])
  const silent = createSocketServer(() => {})
  await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done))
  onTestFinished(() => void silent.close())
  const address = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  const late = await examine(configFolder(trusting(address)), '--timeout', '1')
  expect(late.of('issuer')).toMatchObject([
    { level: 'problem', seen: expect.stringContaining('no answer within 1 seconds') },
  ])
  const endless = await issuerSite(() => (_, response) => {
    const more = (): void => {
      if (response.destroyed) return
      response.write('x'.repeat(100_000))
      setImmediate(more)
    }
    more()
  })
  expect((await examine(configFolder(trusting(endless)))).of('issuer')).toMatchObject([
    { level: 'problem', seen: expect.stringContaining('longer than 1000000 bytes') },
  ])
})

test('an API server that accepts calls and never answers is a problem within the time limit', async () => {
  const { certificate, privateKey, authority } = freshCertificate()
  let connections = 0
  const server = createTlsServer({ cert: certificate, key: privateKey }, () => {})
  // On a busy machine the handshake may take longer than the time limit.
  server.on('connection', () => connections++)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const folder = temporaryFolder()
  const kubeconfig = join(folder, 'kubeconfig')
  const cluster = {
    server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    'certificate-authority-data': Buffer.from(authority).toString('base64'),
  }
  const content = {
    clusters: [{ name: 'one', cluster }],
    users: [{ name: 'one', user: { token: 'secret-token' } }],
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
    'current-context': 'one',
  }
  writeFileSync(kubeconfig, JSON.stringify(content))
  const more = ['--kubeconfig', kubeconfig, '--data', join(folder, 'data'), '--timeout', '1']
  const { code, of, text } = await examine('kubernetes:gatehouse', ...more)
  expect(connections).toBeGreaterThan(0)
  expect(code).toBe(1)
  expect(of('configuration')).toMatchObject([
    {
      level: 'problem',
      at: 'kubernetes:gatehouse',
      seen: expect.stringMatching(/^the objects of the cluster could not be listed: .*(no answer|did not answer)/),
      advice: expect.stringContaining('Check that this machine reaches the API server'),
    },
  ])
  expect(of('database')).toHaveLength(1)
  expect(text).not.toContain('secret-token')
})

test('a target that does not answer is a problem', async () => {
  const url = `http://127.0.0.1:${await freePort()}`
  const yaml = object('Target', 'crm', { className: 'targets.Scim', params: { url, token: 'a-token-that-is-secret' } })
  const { code, of, text } = await examine(configFolder(yaml), '--timeout', '2')
  expect([code, of('target')]).toMatchObject([
    1,
    [{ level: 'problem', at: 'crm', seen: expect.stringContaining('targets.Scim') }],
  ])
  expect(text).not.toContain('a-token-that-is-secret')
})

test('a target that can not be created in time, or at all, is named, and the others are checked', async () => {
  const server = createSocketServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const file = join(temporaryFolder(), 'hr.db')
  const tables = new DatabaseSync(file)
  tables.exec('create table persons (login text not null primary key)')
  tables.close()
  const target = (name: string, url: string, userTable: string) =>
    object('Target', name, { className: 'targets.Sql', params: { url, userTable, userName: 'login' } })
  const yaml = [
    target('slow', `postgres://gatehouse@127.0.0.1:${port}/hr`, 'persons'),
    target('good', `sqlite:${file}`, 'persons'),
    target('empty', `sqlite:${file}`, 'people'),
  ].join('')
  const { of } = await examine(configFolder(yaml), '--timeout', '3')
  expect(of('target')).toMatchObject([
    { at: 'slow', level: 'problem', seen: "targets.Sql: it can't be created: no answer within 3 seconds" },
    { at: 'good', level: 'ok', seen: expect.stringMatching(/^targets\.Sql answered a look-up in \d+ ms$/) },
    { at: 'empty', level: 'problem', seen: expect.stringContaining('there is no table "people"') },
  ])
  expect(of('targets')).toEqual([])
})

test('secrets that other users can read are a problem, unless their folder is closed', async () => {
  const config = configFolder()
  const secrets = join(config, 'secrets')
  mkdirSync(join(secrets, 'crm'), { recursive: true })
  writeFileSync(join(secrets, 'crm/token'), 'x')
  for (const place of [secrets, join(secrets, 'crm')]) chmodSync(place, 0o755)
  chmodSync(join(secrets, 'crm/token'), 0o644)
  const { code, of } = await examine(config)
  expect([code, of('secret files')]).toMatchObject([
    1,
    [{ level: 'problem', seen: expect.stringContaining('crm/token: other users can access it (mode 0644)') }],
  ])
  chmodSync(secrets, 0o700)
  expect((await examine(config)).of('secret files')).toMatchObject([
    { level: 'ok', seen: '1 file, closed to other users' },
  ])
})

test.each([
  [['--timeout', '0'], '--timeout must be'],
  [['--timeout', '61'], '--timeout must be'],
  [['--output', 'xml'], '--output must be'],
  [['--database', 'mysql://x'], '--database: a database address'],
  [['--tls-cert', 'x'], '--tls-cert and --tls-key'],
])('%j is wrong usage', async (args, message) => {
  const { code, errors } = await examine(configFolder(), ...args)
  expect([code, errors[0]]).toEqual([2, expect.stringContaining(message)])
})

test('probes run in parallel, and one that fails does not hide the others', async () => {
  const started: string[] = []
  const gate = Promise.withResolvers<void>()
  const found = await runProbes(
    [
      {
        probe: 'a',
        advice: 'Do a.',
        run: async () => {
          started.push('a')
          await gate.promise
          return [{ level: 'ok', seen: 'fine' }]
        },
      },
      {
        probe: 'b',
        advice: 'Do b.',
        run: async () => {
          started.push('b')
          gate.resolve()
          throw new Error('no b')
        },
      },
    ],
    20_000,
  )
  expect(started).toEqual(['a', 'b'])
  expect(found).toEqual([
    { probe: 'a', level: 'ok', seen: 'fine' },
    { probe: 'b', level: 'problem', seen: 'no b', advice: 'Do b.' },
  ])
})

test('a clock counts as different only outside the time of the call', () => {
  const at = (seconds: number) => clockFinding(new Date(1000 * seconds), { from: 100_000, to: 103_000 }, 'x').level
  expect([95, 101, 108, 94, 40, 39, 164].map(at)).toEqual([
    'ok',
    'ok',
    'ok',
    'warning',
    'warning',
    'problem',
    'problem',
  ])
})

test('an old Node.js is a problem', () => {
  expect([nodeFinding('22.11.0').level, nodeFinding('24.0.0').level]).toEqual(['problem', 'ok'])
})

test('a damaged database is a problem with the advice to restore a backup', async () => {
  const config = configFolder()
  const data = join(config, 'data')
  const storage = openStorage({ dataFolder: data, clock: systemClock, log: silentLogger })
  await storage.ready()
  await storage.close()
  damageTable(join(data, 'gatehouse.db'), 'journal')
  const { code, of } = await examine(config)
  expect(code).toBe(1)
  expect(of('database')).toMatchObject([
    {
      level: 'problem',
      seen: expect.stringContaining('damaged'),
      advice: expect.stringContaining('gatehouse restore'),
    },
  ])
})
