import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, gatehouse, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'

const run = promisify(execFile)
const prov = 'urn:ietf:params:scim:event:prov'

/** Two gateways that anyone may use: one pushes its events, the other stores them for polling. */
const gateway = (name: string, more: string): string => `
    - hosts: ['*']
      uri: /${name}
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain:
        - className: filters.ScimGateway
          params:
            lookupTarget: people
            uidAttributeName: userName
            workflowName: sync
            deleteUserWorkflowName: remove
            scim2tremolo: [active]
            scim2tremolo.active.source: active
            tremolo2scim: [userName, active]
            tremolo2scim.userName.source: userName
            tremolo2scim.active.source: active
            events: ${name}
            eventsIssuer: https://gateway.example.com
            eventsAudience: https://${name}.example.com
            ${more}
`

const filter = (uri: string, className: string, params: string): string => `
    - hosts: ['*']
      uri: ${uri}
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain: [{ className: ${className}, params: ${params} }]
`

const configuration = (pushUrl: string): string => `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: people }
spec: { className: targets.Database, params: {} }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: sync }
spec: { tasks: [{ taskType: provision, target: people, sync: true, attributes: [userName, active] }] }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: remove }
spec: { tasks: [{ taskType: delete, target: people }] }
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: scim }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:${gateway('pushed', `eventsPushUrl: ${pushUrl}`)}          secretParams: [{ name: eventsPushToken, secretName: receiver, secretKey: token }]
${gateway('polled', 'eventsPayload: full')}
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: operator }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:${filter('/events/poll', 'filters.EventPoll', '{ stream: polled }')}${filter('/events/keys', 'filters.EventKeys', '{}')}${filter('/journal', 'filters.ScimJournal', '{ gateway: [scim] }')}
`

type Answer = Parameters<typeof eventReceiver>[0]

interface Scene {
  readonly receiver: EventReceiver
  readonly config: string
  start(dataFolder: string, ...args: string[]): Promise<GatewayProcess>
}

async function scene(answer: Answer = () => undefined): Promise<Scene> {
  const receiver = await eventReceiver(answer)
  onTestFinished(() => receiver.close())
  const config = temporaryFolder()
  writeFileSync(join(config, 'gateway.yaml'), configuration(receiver.url))
  mkdirSync(join(config, 'secrets', 'receiver'), { recursive: true })
  writeFileSync(join(config, 'secrets', 'receiver', 'token'), 'receiver-token\n')
  const start = async (dataFolder: string, ...args: string[]): Promise<GatewayProcess> => {
    const started = await startGatewayProcess({ config, dataFolder, args })
    onTestFinished(async () => void (await started.stop()))
    return started
  }
  return { receiver, config, start }
}

async function send(gatewayUrl: string, method: string, path: string, body?: unknown) {
  const response = await fetch(gatewayUrl + path, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}

async function keysOf(url: string) {
  return createLocalJWKSet((await send(url, 'GET', '/events/keys')).body as JSONWebKeySet)
}

const happened = (claims: readonly JWTPayload[]): string[] =>
  claims.map((payload) => {
    const names = Object.keys(payload['events'] as object).map((uri) => uri.slice(prov.length + 1))
    return `${names.join('+')} ${(payload['sub_id'] as { uri: string }).uri.slice('/Users/'.length)}`
  })

test('events reach a receiver that fails first, in their order, signed with the published keys', async () => {
  const refusal = { status: 400, body: '{"err":"authentication_failed","description":"who are you?"}' }
  const { receiver, start } = await scene((attempt) =>
    attempt === 1 ? { status: 503, headers: { 'retry-after': '1' } } : attempt === 2 ? refusal : undefined,
  )
  await receiver.listen()
  const { url, metricsUrl } = await start(temporaryFolder())
  const created = await send(url, 'POST', '/pushed/Users', { userName: 'ada', active: true, password: 'hunter2' })
  expect(created.status).toBe(201)
  const { id } = created.body as { id: string }
  const operations = [{ op: 'replace', path: 'active', value: false }]
  await send(url, 'PATCH', `/pushed/Users/${id}`, {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
    Operations: operations,
  })
  await send(url, 'PUT', `/pushed/Users/${id}`, { userName: 'ada', active: true })
  await send(url, 'DELETE', `/pushed/Users/${id}`)
  await until(async () => receiver.tokens.length === 4, 20_000)
  expect(happened(receiver.claims())).toEqual([
    `create:notice ${id}`,
    `patch:notice+deactivate ${id}`,
    `put:notice+activate ${id}`,
    `delete ${id}`,
  ])
  const keys = await keysOf(url)
  const jtis = new Set<string | undefined>()
  for (const token of receiver.tokens) {
    const { payload, protectedHeader } = await jwtVerify(token, keys, {
      issuer: 'https://gateway.example.com',
      audience: 'https://pushed.example.com',
      algorithms: ['RS256'],
      typ: 'secevent+jwt',
      requiredClaims: ['iat', 'jti', 'txn', 'sub_id', 'events'],
    })
    expect(protectedHeader.kid).toEqual(expect.any(String))
    expect(payload).not.toHaveProperty('sub')
    expect(payload).not.toHaveProperty('exp')
    expect(JSON.stringify(payload)).not.toContain('hunter2')
    jtis.add(payload.jti)
  }
  expect(jtis.size).toBe(4)
  expect(receiver.attempts.map(({ status }) => status)).toEqual([503, 400, 202, 202, 202, 202])
  expect(receiver.attempts[0]).toMatchObject({
    authorization: 'Bearer receiver-token',
    type: 'application/secevent+jwt',
  })
  const metrics = await (await fetch(`${metricsUrl}/metrics`)).text()
  expect(metrics).toContain('gatehouse_events_total{stream="pushed",outcome="delivered"} 4')
  expect(metrics).toContain('gatehouse_events_total{stream="pushed",outcome="failed"} 2')
})

test('kill -9 between change and delivery loses nothing', async () => {
  const { receiver, start } = await scene()
  const dataFolder = temporaryFolder()
  const first = await start(dataFolder)
  const names = Array.from({ length: 25 }, (_, i) => `user${i}`)
  const ids: string[] = []
  for (const userName of names) {
    const { status, body } = await send(first.url, 'POST', '/pushed/Users', { userName })
    expect(status).toBe(201)
    ids.push((body as { id: string }).id)
  }
  const ended = once(first.process, 'exit')
  first.process.kill('SIGKILL')
  await ended
  await receiver.listen()
  const second = await start(dataFolder)
  await until(async () => receiver.tokens.length >= 25, 20_000)
  const last = await send(second.url, 'POST', '/pushed/Users', { userName: 'late' })
  await until(async () => receiver.tokens.length >= 26, 20_000)
  expect(happened(receiver.claims())).toEqual(
    [...ids, (last.body as { id: string }).id].map((id) => `create:notice ${id}`),
  )
})

test('a receiver polls, and gets each event until it acknowledges it', async () => {
  const { start } = await scene()
  const { url, stop, output } = await start(temporaryFolder())
  const poll = async (body: object) =>
    (await send(url, 'POST', '/events/poll', body)).body as { sets: Record<string, string>; moreAvailable?: boolean }
  expect(await poll({ returnImmediately: true })).toEqual({ sets: {} })
  const waiting = poll({})
  await send(url, 'POST', '/polled/Users', { userName: 'ada', active: true, password: 'hunter2' })
  const [jti = ''] = Object.keys((await waiting).sets)
  await send(url, 'POST', '/polled/Users', { userName: 'grace', active: true })
  const page = await poll({ maxEvents: 1, returnImmediately: true })
  expect(page).toEqual({ sets: (await waiting).sets, moreAvailable: true })
  const { payload } = await jwtVerify(page.sets[jti] ?? '', await keysOf(url), { typ: 'secevent+jwt' })
  expect(payload).toMatchObject({
    jti,
    events: { [`${prov}:create:full`]: { data: { userName: 'ada', active: true } } },
  })
  expect(JSON.stringify(payload)).not.toContain('hunter2')
  const rest = await poll({ ack: [jti], returnImmediately: true })
  expect(Object.keys(rest.sets)).toHaveLength(1)
  const [other = ''] = Object.keys(rest.sets)
  expect(await poll({ setErrs: { [other]: { err: 'invalid_request' } }, maxEvents: 0 })).toEqual({ sets: {} })
  expect(await poll({ returnImmediately: true })).toEqual({ sets: {} })
  expect((await send(url, 'POST', '/events/poll', { maxEvents: -1 })).status).toBe(400)
  // A waiting poll does not delay the end of the process.
  const left = poll({})
  await new Promise((resolve) => setTimeout(resolve, 200))
  const began = Date.now()
  expect(await stop()).toBe(0)
  expect(Date.now() - began).toBeLessThan(8000)
  expect(await left).toEqual({ sets: {} })
  expect(output()).not.toContain('hunter2')
})

test('the operator sees why calls failed, by command and by URL, also after a restart', async () => {
  const { start } = await scene()
  const dataFolder = temporaryFolder()
  const first = await start(dataFolder)
  await send(first.url, 'POST', '/polled/Users', { userName: 'ada', password: 'hunter2' })
  await send(first.url, 'POST', '/polled/Users', { userName: 'ADA' })
  await send(first.url, 'GET', '/polled/Users/nobody?x=hunter2')
  const journal = (await send(first.url, 'GET', '/journal?failed=true')).body as { entries: Record<string, unknown>[] }
  expect(journal.entries).toMatchObject([
    { gateway: 'scim', method: 'GET', status: 404, path: '/polled/Users/nobody?x=[redacted]' },
    { gateway: 'scim', method: 'POST', status: 409, scimType: 'uniqueness', caller: expect.any(String) },
  ])
  expect((await send(first.url, 'GET', '/journal?gateway=operator')).body).toEqual({ entries: [] })
  await send(first.url, 'GET', '/polled/Users/last')
  await first.stop()
  const args = ['scim', 'log', '--data', dataFolder, '--gateway', 'scim']
  const { stdout } = await run(gatehouse, args)
  const lines = stdout.split('\n').filter((line) => /^\d{4}-/.test(line))
  expect(lines.map((line) => line.split(/\s+/).slice(1, 4).join(' '))).toEqual([
    '201 POST /polled/Users',
    '409 POST /polled/Users',
    '404 GET /polled/Users/nobody?x=[redacted]',
    '404 GET /polled/Users/last',
  ])
  expect(stdout).not.toContain('hunter2')
  // Beside a running gateway, and following it.
  const second = await start(dataFolder)
  const following = execFile(gatehouse, [...args, '--follow', '--limit', '1', '--output', 'json'])
  onTestFinished(() => void following.kill())
  let followed = ''
  following.stdout?.on('data', (chunk) => {
    followed += String(chunk)
  })
  await until(async () => followed.includes('/polled/Users/last'), 10_000)
  await send(second.url, 'GET', '/polled/Users/later')
  await until(async () => followed.includes('/polled/Users/later'), 10_000)
  expect(followed.trim().split('\n')).toHaveLength(2)
})

describe.skipIf(postgresUrl() === '')('on PostgreSQL', () => {
  test('two processes deliver one stream one event at a time, and when one is killed the other continues', async () => {
    const { receiver, start } = await scene()
    await receiver.listen()
    const database = await freshSchema()
    const keys = temporaryFolder()
    const one = await start(keys, '--database', database)
    const two = await start(keys, '--database', database)
    const create = (url: string, userName: string) => send(url, 'POST', '/pushed/Users', { userName })
    const created = await Promise.all(
      Array.from({ length: 40 }, (_, i) => create(i % 2 === 0 ? one.url : two.url, `user${i}`)),
    )
    expect(created.map(({ status }) => status)).toEqual(created.map(() => 201))
    await until(async () => receiver.tokens.length >= 40, 20_000)
    expect(receiver.most()).toBe(1)
    expect(new Set(receiver.claims().map(({ jti }) => jti)).size).toBe(40)
    expect(receiver.tokens).toHaveLength(40)
    await receiver.close()
    await create(one.url, 'orphan')
    const ended = once(one.process, 'exit')
    one.process.kill('SIGKILL')
    await ended
    await receiver.listen()
    await until(async () => receiver.tokens.length >= 41, 60_000)
  })
})

interface EventReceiver {
  readonly url: string
  /** Accepted tokens, in order of arrival. */
  readonly tokens: string[]
  /** The data of each attempt. */
  readonly attempts: { readonly status: number; readonly authorization: string | undefined; readonly type: string }[]
  /** The most concurrent requests. */
  readonly most: () => number
  claims(): JWTPayload[]
  listen(): Promise<void>
  close(): Promise<void>
}

/** A receiver of pushed events (RFC 8935). `answer` decides about the n-th attempt; it is accepted by default. */
async function eventReceiver(
  answer: (attempt: number) => { status: number; headers?: Record<string, string>; body?: string } | undefined,
): Promise<EventReceiver> {
  const port = await freePort()
  const tokens: string[] = []
  const attempts: { status: number; authorization: string | undefined; type: string }[] = []
  let server: Server | undefined
  let underWay = 0
  let most = 0
  return {
    url: `http://127.0.0.1:${port}/events`,
    tokens,
    attempts,
    most: () => most,
    claims: () => tokens.map((token) => decodeJwt(token)),
    listen: () =>
      new Promise((resolve) => {
        server = createServer((request, response) => {
          most = Math.max(most, ++underWay)
          let token = ''
          request.on('data', (chunk) => {
            token += String(chunk)
          })
          request.on('end', () => {
            const { status, headers = {}, body = '' } = answer(attempts.length + 1) ?? { status: 202 }
            const { authorization, 'content-type': type = '' } = request.headers
            attempts.push({ status, authorization, type })
            if (status === 202) tokens.push(token)
            underWay--
            response.writeHead(status, headers).end(body)
          })
        }).listen(port, '127.0.0.1', resolve)
      }),
    close: async () => {
      server?.closeAllConnections()
      await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)))
      server = undefined
    },
  }
}
