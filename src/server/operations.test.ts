import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { FoundObject } from '#config/load/set-aside.ts'
import { silentLogger } from '#kernel/logger.ts'
import { defaultConnectionLimits } from '#requests/listener/http-limits.ts'
import type { OutsideHealth } from '#server/composition/runtime.ts'
import { type AuditHealth, readHealth } from '#server/health.ts'
import { createLogger } from '#server/log/log.ts'
import { createMetrics } from '#server/metrics/metrics.ts'
import { createOperationsApp } from '#server/operations.ts'
import { healthPages } from '#server/plain-pages.ts'
import { rawRequest } from '#testing/gateway/raw-request.ts'

const nothingOutside = { targets: [], issuers: [] }
const configuration = { served: 0, setAside: 0 }
const noCopies: AuditHealth = { sinks: [], anchors: [] }

async function start(
  ready: () => Promise<void> = async () => {},
  outside: OutsideHealth = nothingOutside,
  objects: readonly FoundObject[] = [],
  audit = noCopies,
) {
  const metrics = createMetrics()
  const parts = {
    ready,
    check: async () => outside,
    audit: async () => audit,
    objects: () => objects,
    log: silentLogger,
  }
  const app = createOperationsApp({
    operations: { metrics: () => metrics.registry, ready, health: () => readHealth(parts) },
    limits: defaultConnectionLimits,
    meter: metrics.connections,
    log: silentLogger,
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => app.close())
  return (app.server.address() as AddressInfo).port
}

test('the metrics listener serves metrics and health checks, and nothing else', async () => {
  const url = `http://127.0.0.1:${await start()}`
  const metrics = await fetch(`${url}/metrics`)
  expect(metrics.headers.get('content-type')).toContain('text/plain')
  expect(await metrics.text()).toContain('gatehouse_configuration_current')
  expect(await (await fetch(`${url}/check_alive`)).text()).toBe('alive\n')
  expect((await fetch(`${url}/ready`)).status).toBe(200)
  expect((await fetch(`${url}/scim/Users`)).status).toBe(404)
})

test('answers HEAD, and everything else in the format of errors', async () => {
  const port = await start()
  const url = `http://127.0.0.1:${port}`
  const head = await fetch(`${url}/check_alive`, { method: 'HEAD' })
  expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '6', ''])
  for (const [method, path] of [
    ['GET', '/nothing'],
    ['DELETE', '/ready'],
    ['GET', '/constructor'],
  ] as const) {
    const answer = await fetch(url + path, { method })
    expect([answer.status, await answer.json()]).toMatchObject([404, { code: 'NOT_FOUND' }])
  }
  const chunked = 'POST /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n'
  expect(await rawRequest(port, chunked)).toMatch(/^HTTP\/1.1 413 [\s\S]*connection: close[\s\S]*BODY_TOO_LARGE/i)
})

test('a page that fails is an error, and the listener lives', async () => {
  const failing = {
    status: 'up',
    get configuration(): never {
      throw new Error('broken')
    },
  }
  const url = `http://127.0.0.1:${await start(undefined, failing as unknown as OutsideHealth)}`
  expect([(await fetch(`${url}/health`)).status, (await fetch(`${url}/ready`)).status]).toEqual([500, 200])
})

test('says which objects are set aside, and stays ready', async () => {
  const place = { file: 'a.yaml', line: 1, errors: 0, warnings: 0 }
  const cause = { object: 'Target "t"', at: 'a.yaml:9:1', message: 'spec: is required', own: false }
  const url = `http://127.0.0.1:${await start(undefined, undefined, [
    { kind: 'Org', name: 'o', ...place },
    { kind: 'Workflow', name: 'w', ...place, cause },
  ])}`
  expect(await (await fetch(`${url}/health`)).json()).toMatchObject({
    status: 'degraded',
    configuration: {
      served: 1,
      setAside: 1,
      objects: [{ object: 'Workflow "w"', reason: 'Target "t" (a.yaml:9:1): spec: is required' }],
    },
  })
  expect((await fetch(`${url}/ready`)).status).toBe(200)
})

test('probes log each reason once, without a stack', async () => {
  const lines: Record<string, unknown>[] = []
  const log = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  const reasons = ['no worker has started', 'no worker has started', 'shutting down', undefined, 'shutting down']
  const pages = healthPages({
    log,
    ready: async () => {
      const reason = reasons.shift()
      if (reason !== undefined) throw new Error(reason)
    },
  })
  const request = {} as IncomingMessage
  const statuses: unknown[] = []
  for (const _ of [...reasons]) statuses.push((await pages.get('/ready')?.(request))?.status)
  expect(statuses).toEqual([503, 503, 503, undefined, 503])
  expect(lines.map(({ level, msg, reason, err }) => [level, msg, reason, err])).toEqual([
    ['warn', 'not ready', 'no worker has started', undefined],
    ['warn', 'not ready', 'shutting down', undefined],
    ['info', 'ready again', undefined, undefined],
    ['warn', 'not ready', 'shutting down', undefined],
  ])
})

test('reports that it is not ready', async () => {
  const port = await start(() => Promise.reject(new Error('draining')))
  expect((await fetch(`http://127.0.0.1:${port}/ready`)).status).toBe(503)
})

test('says which target or issuer is down, and stays ready', async () => {
  const outside: OutsideHealth = {
    targets: [
      { name: 'crm', health: 'down', millis: 3000, problem: 'no answer within 3000 ms' },
      { name: 'people', health: 'up', millis: 2 },
    ],
    issuers: [{ issuer: 'https://id.example.com', health: 'unchecked' }],
  }
  const url = `http://127.0.0.1:${await start(undefined, outside)}`
  const degraded = await fetch(`${url}/health`)
  expect(degraded.status).toBe(200)
  expect(await degraded.json()).toEqual({
    status: 'degraded',
    gateway: { health: 'up' },
    configuration,
    ...outside,
    audit: noCopies,
  })
  expect((await fetch(`${url}/ready`)).status).toBe(200)
  const own = `http://127.0.0.1:${await start(() => Promise.reject(new Error('the database does not answer')))}`
  const down = await fetch(`${own}/health`)
  expect(down.status).toBe(503)
  const gateway = { health: 'down', problem: 'the database does not answer' }
  expect(await down.json()).toEqual({ status: 'down', gateway, configuration, ...nothingOutside, audit: noCopies })
  expect((await fetch(`${own}/check_alive`)).status).toBe(200)
})

test('says which copy of the audit cannot be written', async () => {
  const anchors = [{ name: 'anchors', health: 'down', problem: '/mnt/audit: read-only' }] as const
  const audit = { sinks: [{ name: 'siem', health: 'unchecked' }], anchors } as const
  const answer = await fetch(`http://127.0.0.1:${await start(undefined, undefined, [], audit)}/health`)
  expect(await answer.json()).toMatchObject({ status: 'degraded', audit })
})

test('has the limits of the public listener', async () => {
  const port = await start()
  const answer = await rawRequest(port, `GET /metrics HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`)
  expect(answer).toMatch(/^HTTP\/1.1 431 /)
  const body = await fetch(`http://127.0.0.1:${port}/metrics`, { method: 'POST', body: 'too much' })
  expect(body.status).toBe(413)
})
