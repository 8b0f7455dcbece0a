import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { type ClusterObjects, keepWebhook } from '#engine/sts/webhook-keeper.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'

const day = 86_400_000
const start = Date.parse('2026-11-15T08:00:00Z')

/** Keeps objects as the API server does: by name, with a version that a writer must know. */
class FakeObjects implements ClusterObjects {
  readonly held = new Map<string, { version: number; object: JsonObject }>()
  writes = 0

  async get(resource: { readonly plural: string }, name: string) {
    const entry = this.held.get(`${resource.plural}/${name}`)
    if (entry === undefined) return undefined
    return { metadata: { resourceVersion: String(entry.version) }, content: entry.object }
  }

  async create(resource: { readonly plural: string }, object: JsonObject): Promise<void> {
    const key = `${resource.plural}/${this.#nameOf(object)}`
    if (this.held.has(key)) throw new GatewayError('CONFLICT', 'it exists')
    this.#put(key, 1, object)
  }

  async replace(resource: { readonly plural: string }, name: string, object: JsonObject): Promise<void> {
    const key = `${resource.plural}/${name}`
    const { resourceVersion } = object['metadata'] as { resourceVersion?: string }
    const version = this.held.get(key)?.version ?? 0
    if (resourceVersion !== String(version)) throw new GatewayError('VERSION_MISMATCH', 'somebody else was faster')
    this.#put(key, version + 1, object)
  }

  #nameOf = (object: JsonObject): string => (object['metadata'] as { name: string }).name

  #put(key: string, version: number, object: JsonObject): void {
    this.writes += 1
    this.held.set(key, { version, object })
  }

  bundle(): string {
    const entry = this.held.get('mutatingwebhookconfigurations/gatehouse-sts')?.object
    const [webhook] = (entry?.['webhooks'] ?? []) as { clientConfig: { caBundle: string } }[]
    return Buffer.from(webhook?.clientConfig.caBundle ?? '', 'base64').toString()
  }
}

const keep = (objects: FakeObjects, now: number) =>
  keepWebhook({
    objects,
    clock: () => new Date(now),
    namespace: 'gatehouse',
    secretName: 'gatehouse-webhook-tls',
    serverNames: ['gatehouse-webhook.gatehouse.svc'],
    webhook: {
      name: 'gatehouse-sts',
      labels: ['aws-role'],
      client: { service: { namespace: 'gatehouse', name: 'gatehouse-webhook', port: 443, path: '/sts/inject' } },
      ownNamespace: 'gatehouse',
    },
  })

const isTrusted = (certificate: string, bundle: string): boolean =>
  (bundle.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []).some((authority) =>
    new X509Certificate(certificate).verify(new X509Certificate(authority).publicKey),
  )

test('what is served is signed by what the API server was told', async () => {
  const objects = new FakeObjects()
  const { certificate } = await keep(objects, start)
  expect(isTrusted(certificate, objects.bundle())).toBe(true)
  expect(objects.writes).toBe(2)
})

test('looking again writes nothing', async () => {
  const objects = new FakeObjects()
  const first = await keep(objects, start)
  expect(await keep(objects, start + day)).toEqual(first)
  expect(objects.writes).toBe(2)
})

test('many replicas that start at once serve the same certificate', async () => {
  const objects = new FakeObjects()
  const served = await Promise.all(Array.from({ length: 4 }, () => keep(objects, start)))
  expect(new Set(served.map(({ certificate }) => certificate)).size).toBe(1)
  expect(objects.writes).toBe(2)
})

test('replicas that renew at once agree', async () => {
  const objects = new FakeObjects()
  const { certificate } = await keep(objects, start)
  const served = await Promise.all(Array.from({ length: 4 }, () => keep(objects, start + 80 * day)))
  expect(new Set(served.map((one) => one.certificate)).size).toBe(1)
  expect(served[0]?.certificate).not.toBe(certificate)
})

test('over two years every certificate is trusted by the bundle of the day before', async () => {
  const objects = new FakeObjects()
  const seen = new Set<string>()
  await keep(objects, start)
  for (let days = 1; days < 730; days += 1) {
    const former = objects.bundle()
    const { certificate } = await keep(objects, start + days * day)
    seen.add(certificate)
    expect(isTrusted(certificate, former)).toBe(true)
    expect(isTrusted(certificate, objects.bundle())).toBe(true)
  }
  expect(seen.size).toBeGreaterThan(10)
}, 60_000)

test('a configuration that somebody changed is put right, and defaults of the server are left', async () => {
  const objects = new FakeObjects()
  await keep(objects, start)
  const key = 'mutatingwebhookconfigurations/gatehouse-sts'
  const held = objects.held.get(key)
  const [webhook] = (held?.object['webhooks'] ?? []) as JsonObject[]
  objects.held.set(key, { version: 7, object: { webhooks: [{ ...webhook, added: 'by default' }] } })
  await keep(objects, start)
  expect(objects.held.get(key)?.version).toBe(7)
  objects.held.set(key, { version: 8, object: { webhooks: [{ ...webhook, failurePolicy: 'Ignore' }] } })
  await keep(objects, start)
  expect(objects.held.get(key)?.object).toMatchObject({ webhooks: [{ failurePolicy: 'Fail' }] })
})

test.each(['', 'bm8=', Buffer.from('{"authorities":[],"server":{}}').toString('base64')])(
  'a secret that says "%s" is made anew',
  async (text) => {
    const objects = new FakeObjects()
    objects.held.set('secrets/gatehouse-webhook-tls', { version: 3, object: { data: { 'webhook-tls.json': text } } })
    const { certificate } = await keep(objects, start)
    expect(isTrusted(certificate, objects.bundle())).toBe(true)
  },
)

test('a conflict that never ends is told', async () => {
  const objects = new FakeObjects()
  objects.create = async () => {
    throw new GatewayError('CONFLICT', 'always')
  }
  await expect(keep(objects, start)).rejects.toMatchObject({ code: 'CONFLICT' })
})
