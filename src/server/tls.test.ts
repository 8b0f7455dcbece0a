import { get, type RequestOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import { defaultConnectionLimits } from '#requests/listener/http-limits.ts'
import { TrustedProxies } from '#requests/listener/trusted-proxies.ts'
import { createApp } from '#server/app.ts'
import { noAccessLog } from '#server/log/log.ts'
import { createMetrics } from '#server/metrics/metrics.ts'
import type { RunningConfiguration } from '#server/reload.ts'
import { testServerCertificate, testServerKey, unrelatedCertificate } from '#testing/gateway/test-certificates.ts'

let app: ReturnType<typeof createApp>
let port: number

beforeAll(async () => {
  app = createApp({
    running: {} as RunningConfiguration,
    metrics: createMetrics(),
    log: silentLogger,
    accessLog: noAccessLog,
    proxies: new TrustedProxies([]),
    limits: defaultConnectionLimits,
    tls: { cert: testServerCertificate, key: testServerKey },
    ready: async () => {},
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  port = (app.server.address() as AddressInfo).port
})
afterAll(async () => {
  await app.close()
})

const status = (options: RequestOptions): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/check_alive', agent: false, ...options }, (response) => {
      response.resume()
      resolve(response.statusCode)
    }).on('error', reject)
  })

test('the listener speaks TLS with the given certificate, and nothing else', async () => {
  expect(await status({ ca: testServerCertificate })).toBe(200)
  await expect(status({ ca: unrelatedCertificate })).rejects.toThrow('certificate')
  await expect(fetch(`http://127.0.0.1:${port}/check_alive`)).rejects.toThrow()
})

test('versions before TLS 1.2 are rejected', async () => {
  const options = { host: '127.0.0.1', port, rejectUnauthorized: false, ciphers: 'DEFAULT@SECLEVEL=0' } as const
  const attempt = new Promise((resolve, reject) => {
    const socket = connect({ ...options, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' }, () => resolve(socket.end()))
    socket.on('error', reject)
  })
  await expect(attempt).rejects.toThrow()
})
