import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import { defaultConnectionLimits } from '#server/http-limits.ts'
import { createOperationsApp } from '#server/listeners.ts'
import { createMetrics } from '#server/metrics/metrics.ts'
import { rawRequest } from '#testing/raw-request.ts'

async function start(ready: () => Promise<void> = async () => {}) {
  const app = createOperationsApp({
    metrics: createMetrics(),
    log: silentLogger,
    limits: defaultConnectionLimits,
    ready,
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

test('reports that it is not ready', async () => {
  const port = await start(() => Promise.reject(new Error('draining')))
  expect((await fetch(`http://127.0.0.1:${port}/ready`)).status).toBe(503)
})

test('has the limits of the public listener', async () => {
  const port = await start()
  const answer = await rawRequest(port, `GET /metrics HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`)
  expect(answer).toMatch(/^HTTP\/1.1 431 /)
  const body = await fetch(`http://127.0.0.1:${port}/metrics`, { method: 'POST', body: 'too much' })
  expect(body.status).toBe(413)
})
