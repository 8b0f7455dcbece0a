import { createSecretKey, randomBytes, X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { KeyStore } from '#keys/key-store.ts'
import { SecretBox } from '#keys/secret-box.ts'
import { keyOwners } from '#keys/token-key-pair.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { keepWebhookTls, registerWebhook, type WebhookObjects } from './webhook-keeper.ts'

const day = 86_400_000
const start = Date.parse('2026-11-15T08:00:00Z')
const key = 'mutatingwebhookconfigurations/gatehouse-sts'

/** Stores objects like the API server: by name, with a version that a writer must know. */
class FakeObjects implements WebhookObjects {
  readonly held = new Map<string, { version: number; object: Readonly<Record<string, unknown>> }>()
  writes = 0

  async get(resource: { readonly plural: string }, name: string) {
    const entry = this.held.get(`${resource.plural}/${name}`)
    return entry && stored(name, entry.version, entry.object)
  }

  async create(resource: { readonly plural: string }, object: Readonly<Record<string, unknown>>) {
    const { name } = object['metadata'] as { name: string }
    if (this.held.has(`${resource.plural}/${name}`)) throw new GatewayError('CONFLICT', 'it exists')
    return this.#put(resource.plural, name, 1, object)
  }

  async replace(resource: { readonly plural: string }, name: string, object: Readonly<Record<string, unknown>>) {
    const { resourceVersion } = object['metadata'] as { resourceVersion?: string }
    const version = this.held.get(`${resource.plural}/${name}`)?.version ?? 0
    if (resourceVersion !== String(version)) throw new GatewayError('VERSION_MISMATCH', 'somebody else was faster')
    return this.#put(resource.plural, name, version + 1, object)
  }

  #put(plural: string, name: string, version: number, object: Readonly<Record<string, unknown>>) {
    this.writes += 1
    this.held.set(`${plural}/${name}`, { version, object })
    return stored(name, version, object)
  }

  bundle(): string {
    const [webhook] = (this.held.get(key)?.object['webhooks'] ?? []) as { clientConfig: { caBundle: string } }[]
    return Buffer.from(webhook?.clientConfig.caBundle ?? '', 'base64').toString()
  }
}

const stored = (name: string, version: number, content: Readonly<Record<string, unknown>>) => ({
  metadata: { name, uid: 'u', resourceVersion: String(version) },
  content,
})

class Fixture {
  readonly objects = new FakeObjects()
  readonly store: KeyStore
  now = start
  readonly box: SecretBox

  constructor() {
    const secret = { id: 'k', key: createSecretKey(randomBytes(32)) }
    this.box = new SecretBox(async () => [secret], keyOwners)
    this.store = new KeyStore(memoryDatabase(() => new Date(this.now)))
  }

  get options() {
    const serverNames = ['gatehouse-webhook.gatehouse.svc']
    return { store: this.store, box: this.box, clock: () => new Date(this.now), serverNames }
  }

  /** One pass of one replica; returns what it serves afterwards. */
  async keep(now: number, labels = ['aws-role']): Promise<string> {
    this.now = now
    const tls = await keepWebhookTls(this.options)
    const client = {
      service: { namespace: 'gatehouse', name: 'gatehouse-webhook', port: 443, path: '/sts/inject' },
    }
    const webhook = { name: 'gatehouse-sts', labels, client, ownNamespace: 'gatehouse' }
    await registerWebhook(this.options, tls, webhook, this.objects)
    return tls.server.certificate
  }
}

const known = new Map<string, boolean>()

function isTrusted(certificate: string, bundle: string): boolean {
  const found = known.get(certificate + bundle)
  if (found !== undefined) return found
  const authorities = bundle.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []
  const server = new X509Certificate(certificate)
  const isSigned = authorities.some((authority) => server.verify(new X509Certificate(authority).publicKey))
  known.set(certificate + bundle, isSigned)
  return isSigned
}

test('the served certificate is signed by the CA that the API server knows, and is stored encrypted', async () => {
  const fixture = new Fixture()
  const certificate = await fixture.keep(start)
  expect(isTrusted(certificate, fixture.objects.bundle())).toBe(true)
  expect(fixture.objects.writes).toBe(1)
  const text = JSON.stringify(await fixture.store.get('sts.injector'))
  expect(text).toContain('sealed')
  expect(text).not.toMatch(/PRIVATE KEY|BEGIN|certificate/)
})

test('a second pass writes nothing', async () => {
  const fixture = new Fixture()
  const first = await fixture.keep(start)
  const version = (await fixture.store.get('sts.injector'))?.version
  expect(await fixture.keep(start + day)).toEqual(first)
  expect(fixture.objects.writes).toBe(1)
  expect((await fixture.store.get('sts.injector'))?.version).toBe(version)
})

test('many replicas that start at once serve the same certificate', async () => {
  const fixture = new Fixture()
  const served = await Promise.all(Array.from({ length: 4 }, () => fixture.keep(start)))
  expect(new Set(served).size).toBe(1)
  expect(fixture.objects.writes).toBe(1)
})

test('replicas that renew at once agree', async () => {
  const fixture = new Fixture()
  const former = await fixture.keep(start)
  const served = await Promise.all(Array.from({ length: 4 }, () => fixture.keep(start + 80 * day)))
  expect(new Set(served).size).toBe(1)
  expect(served[0]).not.toBe(former)
})

test('over two years every certificate is trusted by the bundle of the day before', async () => {
  const fixture = new Fixture()
  const seen = new Set<string>()
  await fixture.keep(start)
  for (let days = 1; days < 730; days += 1) {
    const former = fixture.objects.bundle()
    const certificate = await fixture.keep(start + days * day)
    seen.add(certificate)
    expect(isTrusted(certificate, former)).toBe(true)
    expect(isTrusted(certificate, fixture.objects.bundle())).toBe(true)
  }
  expect(seen.size).toBeGreaterThan(10)
}, 60_000)

test("while the API server can't be updated, the old CA continues to sign", async () => {
  const fixture = new Fixture()
  await fixture.keep(start)
  const known = fixture.objects.bundle()
  for (let days = 1; days < 330; days += 1) {
    fixture.now = start + days * day
    const { server, authorities } = await keepWebhookTls(fixture.options)
    expect(isTrusted(server.certificate, known)).toBe(true)
    if (days > 300) expect(authorities).toHaveLength(2)
  }
}, 60_000)

test('a changed configuration is restored, and defaults of the server stay', async () => {
  const fixture = new Fixture()
  const { held } = fixture.objects
  await fixture.keep(start)
  const [webhook] = (held.get(key)?.object['webhooks'] ?? []) as JsonObject[]
  held.set(key, { version: 7, object: { webhooks: [{ ...webhook, added: 'by default' }] } })
  await fixture.keep(start)
  expect(held.get(key)?.version).toBe(7)
  held.set(key, { version: 8, object: { webhooks: [{ ...webhook, failurePolicy: 'Ignore' }] } })
  await fixture.keep(start)
  expect(held.get(key)?.object).toMatchObject({ webhooks: [{ failurePolicy: 'Fail' }] })
})

test("labels and annotations of the object's owner stay", async () => {
  const fixture = new Fixture()
  const metadata = {
    name: 'gatehouse-sts',
    labels: { 'app.kubernetes.io/managed-by': 'Helm' },
    annotations: { 'meta.helm.sh/release-name': 'gatehouse' },
    managedFields: [{}],
  }
  fixture.objects.held.set(key, { version: 3, object: { metadata } })
  await fixture.keep(start)
  const { managedFields, ...kept } = metadata
  expect(fixture.objects.held.get(key)?.object['metadata']).toEqual({ ...kept, resourceVersion: '3' })
  expect(fixture.objects.bundle()).toContain('BEGIN CERTIFICATE')
})

test('without an endpoint that injects, an object without webhooks is left alone', async () => {
  const fixture = new Fixture()
  fixture.objects.held.set(key, { version: 3, object: { metadata: { name: 'gatehouse-sts' } } })
  await fixture.keep(start, [])
  expect(fixture.objects.held.get(key)?.version).toBe(3)
})

test('data encrypted with another secret key is reported, and not re-created', async () => {
  const fixture = new Fixture()
  await fixture.keep(start)
  const box = new SecretBox(async () => [{ id: 'other', key: createSecretKey(randomBytes(32)) }], keyOwners)
  await expect(keepWebhookTls({ ...fixture.options, box })).rejects.toThrow('need the key k')
  expect((await fixture.store.get('sts.injector'))?.version).toBe(2)
})

test('an endless conflict is reported', async () => {
  const fixture = new Fixture()
  fixture.objects.create = async () => {
    throw new GatewayError('CONFLICT', 'always')
  }
  await expect(fixture.keep(start)).rejects.toMatchObject({ code: 'CONFLICT' })
})
