import { X509Certificate } from 'node:crypto'
import { connect, createServer } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { authoritiesOf, renewWebhookTls, type WebhookTls, withRegistration } from '#protocols/admission/webhook-tls.ts'

const names = ['gatehouse-webhook.gatehouse.svc', 'gatehouse-webhook.gatehouse.svc.cluster.local', '127.0.0.1']
const day = 86_400_000
const start = new Date('2026-11-15T08:00:00Z')
const after = (days: number): Date => new Date(start.getTime() + days * day)

const isTrusted = ({ server }: Pick<WebhookTls, 'server'>, bundle: WebhookTls): boolean =>
  bundle.authorities.some(({ certificate }) =>
    new X509Certificate(server.certificate).verify(new X509Certificate(certificate).publicKey),
  )

/** The result of a TLS client that trusts the bundle. */
async function handshake(tls: WebhookTls, servername: string): Promise<string> {
  const server = createServer({ key: tls.server.privateKey, cert: tls.server.certificate })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  try {
    return await new Promise((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, servername, ca: authoritiesOf(tls) }, () => {
        socket.end()
        resolve('trusted')
      })
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    })
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
}

test('a TLS client that trusts the CA accepts the server by its names, and by no other', async () => {
  const tls = renewWebhookTls(undefined, names, new Date())
  expect(await handshake(tls, 'gatehouse-webhook.gatehouse.svc')).toBe('trusted')
  expect(await handshake(tls, 'elsewhere.gatehouse.svc')).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
  const other = renewWebhookTls(undefined, names, new Date())
  expect(await handshake({ ...tls, authorities: other.authorities }, 'gatehouse-webhook.gatehouse.svc')).not.toBe(
    'trusted',
  )
})

test('creates a CA that signs servers only, and a server that signs nothing', () => {
  const { authorities, server } = renewWebhookTls(undefined, names, start)
  const authority = new X509Certificate(authorities[0]?.certificate ?? '')
  const served = new X509Certificate(server.certificate)
  expect(authority.ca).toBe(true)
  expect(served.ca).toBe(false)
  expect(served.checkIssued(authority)).toBe(true)
  expect(served.subjectAltName).toBe(
    'DNS:gatehouse-webhook.gatehouse.svc, DNS:gatehouse-webhook.gatehouse.svc.cluster.local, IP Address:127.0.0.1',
  )
  expect(served.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1'])
  expect(served.serialNumber).not.toBe(authority.serialNumber)
})

test('nothing changes while everything is valid', () => {
  const tls = renewWebhookTls(undefined, names, start)
  for (const days of [0, 1, 10, 59]) expect(renewWebhookTls(tls, names, after(days))).toBe(tls)
})

test('other names cause another certificate of the same CA', () => {
  const tls = renewWebhookTls(undefined, names, start)
  const renewed = renewWebhookTls(tls, ['new.svc'], after(2))
  expect(renewed.authorities).toEqual(tls.authorities)
  expect(new X509Certificate(renewed.server.certificate).subjectAltName).toBe('DNS:new.svc')
})

test('B1: checked every day for three years, the served certificate is valid and its CA was registered before', () => {
  let tls = withRegistration(renewWebhookTls(undefined, names, start), start)
  let authorities = 1
  let servers = 1
  const ends = new Map<string, number>()
  const endOf = (certificate: string): number => {
    const end = ends.get(certificate) ?? Date.parse(new X509Certificate(certificate).validTo)
    ends.set(certificate, end)
    return end
  }
  for (let days = 1; days < 3 * 365; days += 1) {
    const now = after(days)
    const next = renewWebhookTls(tls, names, now)
    expect(next.authorities.length).toBeLessThanOrEqual(2)
    // The API server may still know only the former bundle, and then the former server may answer under the new
    // bundle. On most days nothing changed.
    if (days === 1 || !isDeepStrictEqual(next, tls)) expect(isTrusted(next, tls)).toBe(true)
    if (next.server !== tls.server) {
      servers += 1
      const { validFrom, validTo } = new X509Certificate(next.server.certificate)
      expect(Date.parse(validFrom)).toBeLessThan(now.getTime())
      expect(Date.parse(validTo)).toBeGreaterThan(now.getTime())
    }
    if (next.authorities.at(-1) !== tls.authorities.at(-1)) authorities += 1
    for (const { certificate } of next.authorities) {
      expect(endOf(certificate)).toBeGreaterThan(now.getTime())
    }
    tls = withRegistration(next, now)
  }
  expect(authorities).toBeGreaterThan(3)
  expect(servers).toBeGreaterThan(15)
}, 60_000)

test('an unregistered CA signs nothing while another can', () => {
  let tls = withRegistration(renewWebhookTls(undefined, names, start), start)
  const [first] = tls.authorities
  for (let days = 1; days < 365; days += 1) {
    tls = renewWebhookTls(tls, names, after(days))
    const signer = new X509Certificate(first?.certificate ?? '')
    expect(new X509Certificate(tls.server.certificate).verify(signer.publicKey)).toBe(true)
  }
  expect(tls.authorities).toHaveLength(2)
  const registered = withRegistration(tls, after(364))
  expect(withRegistration(registered, after(364))).toBe(registered)
  expect(registered.authorities.map((authority) => authority.registered)).toEqual([
    start.getTime(),
    after(364).getTime(),
  ])
})

test('after years without a check, everything is re-created', () => {
  const tls = renewWebhookTls(undefined, names, start)
  const renewed = renewWebhookTls(tls, names, after(1000))
  expect(renewed.authorities).toHaveLength(1)
  expect(isTrusted(renewed, renewed)).toBe(true)
  expect(isTrusted(renewed, tls)).toBe(false)
})
