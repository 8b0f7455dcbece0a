import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import https, { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PeerCertificate, TLSSocket } from 'node:tls'
import { afterEach, expect, test, vi } from 'vitest'
import type { Configuration } from '#config/configuration/configuration.ts'
import type { StsWebhookConfig } from '#config/configuration/sts-webhook.ts'
import type { WebhookObjects } from '#features/sts/service/webhook-keeper.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { KeyStore } from '#keys/key-store.ts'
import { SecretBox } from '#keys/secret-box.ts'
import { keyOwners } from '#keys/token-key-pair.ts'
import { authoritiesOf, renewWebhookTls } from '#protocols/admission/webhook-tls.ts'
import { defaultConnectionLimits } from '#requests/listener/http-limits.ts'
import { Listener, type ListenerTls } from '#requests/listener/http-server.ts'
import { TrustedProxies } from '#requests/listener/trusted-proxies.ts'
import { createMetrics } from '#server/metrics/metrics.ts'
import { WebhookListener } from '#server/webhook-listener.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { freePort } from '#testing/gateway/free-port.ts'

const day = 86_400_000
/** So long ago that a certificate created then is due for renewal now. */
const start = Date.now() - 61 * day
const madeTls = {
  kind: 'made',
  cluster: 'k8s',
  client: { url: 'https://127.0.0.1/sts/inject' },
  configuration: 'gatehouse-sts',
} as const

/** One certificate for clients and servers of 127.0.0.1, and its CA. */
function given(at = new Date()): { tls: StsWebhookConfig['tls']; authority: string; cert: string; key: string } {
  const made = renewWebhookTls(undefined, ['127.0.0.1'], at)
  const { certificate, privateKey } = made.server
  const tls = { kind: 'given', certificate, privateKey } as const
  return { tls, authority: authoritiesOf(made), cert: certificate, key: privateKey }
}

const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** The listener of a replaceable configuration, with an API server that can be unavailable. */
async function fixture(config: Partial<StsWebhookConfig>, started = true) {
  const port = await freePort()
  const secret = { id: 'k', key: createSecretKey(randomBytes(32)) }
  const state = {
    now: start,
    away: false,
    registered: [] as boolean[],
    bundle: '',
    ends: undefined as Date | undefined,
    current: undefined as boolean | undefined,
    config: { at: '', listen: { host: '127.0.0.1', port }, clientAuthorities: undefined, tls: madeTls, ...config } as
      | StsWebhookConfig
      | undefined,
  }
  const objects: WebhookObjects = {
    get: async () => undefined,
    create: async (_, object) => {
      if (state.away) throw new GatewayError('TARGET_UNREACHABLE', 'away')
      const [webhook] = object['webhooks'] as { clientConfig: { caBundle: string } }[]
      state.bundle = Buffer.from(webhook?.clientConfig.caBundle ?? '', 'base64').toString()
      return { metadata: { name: '', uid: '', resourceVersion: '' }, content: {} }
    },
    replace: async () => {
      throw new Error('there is nothing to replace')
    },
  }
  const clock = () => new Date(state.now)
  const listener = new WebhookListener({
    configuration: () =>
      ({ stsWebhook: state.config, stsEndpoints: [{ pods: { label: 'aws-role' } }] }) as unknown as Configuration,
    createApp,
    useObjects: (_, work) => work(objects),
    store: new KeyStore(memoryDatabase(clock)),
    box: new SecretBox(async () => [secret], keyOwners),
    clock,
    log: silentLogger,
    meter: {
      serves: (ends) => (state.ends = ends),
      current: (isCurrent) => (state.current = isCurrent),
      registered: (ok) => state.registered.push(ok),
    },
    everyMillis: 20,
    againMillis: 20,
  })
  closers.push(() => listener.close())
  if (started) await listener.start()
  return { listener, state, port }
}

function createApp({ cert, key, clientAuthorities: ca }: ListenerTls) {
  const { connections: meter } = createMetrics()
  const parts = { listener: 'webhook', limits: defaultConnectionLimits, proxies: new TrustedProxies([]), meter }
  const tls = { cert, key, clientAuthorities: ca }
  return new Listener({ ...parts, log: silentLogger }, tls, (_request, response) => response.end('here'))
}

/** The certificate that a caller with the trusted `ca` sees. */
const call = (port: number, options: https.RequestOptions): Promise<PeerCertificate> =>
  new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: '/', agent: false, ...options }, (response) => {
      const certificate = (response.socket as TLSSocket).getPeerCertificate()
      response.resume().once('end', () => resolve(certificate))
    })
    sent.once('error', reject).end()
  })

const soon = { timeout: 10_000, interval: 20 }

test('a generated certificate is served, and its CA is registered at the API server', async () => {
  const { state, port, listener } = await fixture({})
  expect(listener.address).toBe(`https://127.0.0.1:${port}`)
  await vi.waitFor(() => expect(state.registered).toContain(true), soon)
  await expect(call(port, { ca: state.bundle })).resolves.toMatchObject({ subject: { CN: 'gatehouse-webhook' } })
  expect(state.ends?.getTime()).toBeCloseTo(start + 90 * day, -4)
})

test('it serves while the API server is unavailable, and registers later', async () => {
  const { state, port, listener } = await fixture({}, false)
  state.away = true
  await listener.start()
  await vi.waitFor(() => expect(state.registered).toContain(false), soon)
  await expect(call(port, { rejectUnauthorized: false })).resolves.toBeDefined()
  state.away = false
  await vi.waitFor(() => expect(state.registered).toContain(true), soon)
  await expect(call(port, { ca: state.bundle })).resolves.toBeDefined()
})

test('a certificate is renewed without a restart, after the API server knows the new CA', async () => {
  const { state, port } = await fixture({})
  await vi.waitFor(() => expect(state.registered).toContain(true), soon)
  const first = await call(port, { ca: state.bundle })
  state.away = true
  state.now += 61 * day
  await vi.waitFor(() => expect(state.registered.at(-1)).toBe(false), soon)
  expect((await call(port, { ca: state.bundle })).serialNumber).toBe(first.serialNumber)
  state.away = false
  await vi.waitFor(async () => {
    expect((await call(port, { ca: state.bundle })).serialNumber).not.toBe(first.serialNumber)
  }, soon)
  expect(state.ends?.getTime()).toBeCloseTo(start + 151 * day, -4)
})

test('a replaced certificate of the operator is served to new connections, and nothing is registered', async () => {
  const [one, two] = [given(), given()]
  const { state, port, listener } = await fixture({ tls: one.tls })
  await expect(call(port, { ca: one.authority })).resolves.toBeDefined()
  state.now = Date.now()
  if (state.config !== undefined) state.config = { ...state.config, tls: two.tls }
  listener.wake()
  await vi.waitFor(() => expect(call(port, { ca: two.authority })).resolves.toBeDefined(), soon)
  await expect(call(port, { ca: one.authority })).rejects.toThrow('certificate')
  expect(state.registered).toEqual([])
})

test('a configured certificate that clients would reject is not served: the old one stays', async () => {
  const [one, expired, two] = [given(), given(new Date(Date.now() - 100 * day)), given()]
  const { state, port, listener } = await fixture({ tls: one.tls })
  state.now = Date.now()
  const use = (tls: StsWebhookConfig['tls']): void => {
    if (state.config !== undefined) state.config = { ...state.config, tls }
    listener.wake()
  }
  use(expired.tls)
  await vi.waitFor(() => expect(state.current).toBe(false), soon)
  await expect(call(port, { ca: one.authority })).resolves.toBeDefined()
  use(two.tls)
  await vi.waitFor(() => expect(state.current).toBe(true), soon)
  await expect(call(port, { ca: two.authority })).resolves.toBeDefined()
})

test('files of a configured certificate are read again without a change of the configuration', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-webhook-'))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') }
  const [one, two] = [given(), given()]
  const write = ({ cert, key }: { cert: string; key: string }): void => {
    writeFileSync(files.certFile, cert)
    writeFileSync(files.keyFile, key)
  }
  write(one)
  const { state, port } = await fixture({ tls: { ...one.tls, files } as StsWebhookConfig['tls'] })
  state.now = Date.now()
  await expect(call(port, { ca: one.authority })).resolves.toBeDefined()
  write(two)
  await vi.waitFor(() => expect(call(port, { ca: two.authority })).resolves.toBeDefined(), soon)
})

test('callers without a certificate of the client CAs are rejected', async () => {
  const [server, client, stranger] = [given(), given(), given()]
  const { port } = await fixture({ tls: server.tls, clientAuthorities: client.authority })
  const { cert, key } = client
  await expect(call(port, { ca: server.authority })).rejects.toThrow()
  await expect(call(port, { ca: server.authority, cert: stranger.cert, key: stranger.key })).rejects.toThrow()
  // Its certificate is for servers only, which a server does not accept from a client.
  await expect(call(port, { ca: server.authority, cert, key })).rejects.toThrow()
})

test('the listener moves, and closes, with the configuration', async () => {
  const { state, port, listener } = await fixture(given())
  const elsewhere = await freePort()
  const { config } = state
  if (config !== undefined) state.config = { ...config, listen: { host: '127.0.0.1', port: elsewhere } }
  listener.wake()
  await vi.waitFor(() => expect(listener.address).toBe(`https://127.0.0.1:${elsewhere}`), soon)
  await expect(call(port, { rejectUnauthorized: false })).rejects.toThrow('ECONNREFUSED')
  state.config = undefined
  listener.wake()
  await vi.waitFor(() => expect(listener.address).toBeUndefined(), soon)
  await expect(call(elsewhere, { rejectUnauthorized: false })).rejects.toThrow('ECONNREFUSED')
  expect(state.ends).toBeUndefined()
})

test('a port in use fails the start, and on a move the open listener stays', async () => {
  const taken = https.createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  closers.push(() => new Promise((resolve) => taken.close(resolve)))
  const listen = { host: '127.0.0.1', port: (taken.address() as AddressInfo).port }
  await expect(fixture({ ...given(), listen })).rejects.toThrow('EADDRINUSE')
  const { state, port, listener } = await fixture(given())
  if (state.config !== undefined) state.config = { ...state.config, listen }
  listener.wake()
  await new Promise((resolve) => setTimeout(resolve, 100))
  await expect(call(port, { rejectUnauthorized: false })).resolves.toBeDefined()
})
