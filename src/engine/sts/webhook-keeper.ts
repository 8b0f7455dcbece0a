import type { Clock } from '#kernel/clock.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { type WebhookOptions, webhookConfiguration } from '#protocols/admission/webhook-configuration.ts'
import {
  authoritiesOf,
  type KeptCertificate,
  renewWebhookTls,
  type WebhookTls,
} from '#protocols/admission/webhook-tls.ts'

interface ResourceAddress {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly namespace?: string
}

interface ClusterObject {
  readonly metadata: { readonly resourceVersion: string }
  readonly content: Readonly<Record<string, unknown>>
}

/** Objects of the cluster that asks the webhook. Writing throws CONFLICT or VERSION_MISMATCH when somebody else was faster. */
export interface ClusterObjects {
  get(resource: ResourceAddress, name: string): Promise<ClusterObject | undefined>
  create(resource: ResourceAddress, object: JsonObject): Promise<unknown>
  replace(resource: ResourceAddress, name: string, object: JsonObject): Promise<unknown>
}

export interface WebhookKeeperOptions {
  readonly objects: ClusterObjects
  readonly clock: Clock
  /** Of Gatehouse itself. */
  readonly namespace: string
  /** Holds the authorities and the certificate, for all replicas. */
  readonly secretName: string
  /** The names under which the API server calls the webhook. */
  readonly serverNames: readonly string[]
  readonly webhook: Omit<WebhookOptions, 'certificates'>
}

const attempts = 5
/** Somebody else made or changed the object first. */
const lost: ReadonlySet<ErrorCode> = new Set(['CONFLICT', 'VERSION_MISMATCH'])
const secretKey = 'webhook-tls.json'

/**
 * Looks once at the webhook's TLS and configuration, renews and writes what is due, and gives what the listener is to
 * serve. Any number of replicas may do so at once: the first write wins, and the others read it.
 */
export async function keepWebhook(options: WebhookKeeperOptions): Promise<KeptCertificate> {
  const tls = await untilWritten(() => keepTls(options))
  await untilWritten(() => keepConfiguration(options, authoritiesOf(tls)))
  return tls.server
}

async function keepTls({
  objects,
  clock,
  namespace,
  secretName,
  serverNames,
}: WebhookKeeperOptions): Promise<WebhookTls> {
  const resource = { group: '', version: 'v1', plural: 'secrets', namespace }
  const stored = await objects.get(resource, secretName)
  const present = stored === undefined ? undefined : readSecret(stored.content)
  const tls = renewWebhookTls(present, serverNames, clock())
  if (tls === present) return tls
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: metadataOf(secretName, stored, { namespace }),
    type: 'Opaque',
    data: { [secretKey]: Buffer.from(JSON.stringify(tls)).toString('base64') },
  }
  if (stored === undefined) await objects.create(resource, secret)
  else await objects.replace(resource, secretName, secret)
  return tls
}

async function keepConfiguration({ objects, webhook }: WebhookKeeperOptions, certificates: string): Promise<void> {
  const resource = { group: 'admissionregistration.k8s.io', version: 'v1', plural: 'mutatingwebhookconfigurations' }
  const wanted = webhookConfiguration({ ...webhook, certificates })
  const stored = await objects.get(resource, webhook.name)
  if (stored === undefined) {
    await objects.create(resource, wanted)
  } else if (!isWithin(wanted['webhooks'], stored.content['webhooks'])) {
    await objects.replace(resource, webhook.name, { ...wanted, metadata: metadataOf(webhook.name, stored, {}) })
  }
}

/** Kubernetes adds defaults to what it was given, so more may be there than is wanted. */
function isWithin(wanted: unknown, present: unknown): boolean {
  if (Array.isArray(wanted)) {
    const list: readonly unknown[] = wanted
    if (!Array.isArray(present)) return list.length === 0
    const found: readonly unknown[] = present
    return list.length === found.length && list.every((value, position) => isWithin(value, found[position]))
  }
  if (isJsonObject(wanted)) {
    return isJsonObject(present) && Object.entries(wanted).every(([name, value]) => isWithin(value, present[name]))
  }
  return wanted === present
}

const metadataOf = (name: string, stored: ClusterObject | undefined, place: JsonObject): JsonObject => ({
  ...place,
  name,
  labels: { 'app.kubernetes.io/managed-by': 'gatehouse' },
  ...(stored === undefined ? {} : { resourceVersion: stored.metadata.resourceVersion }),
})

/** What cannot be read is made anew, as if it were not there. */
function readSecret(content: Readonly<Record<string, unknown>>): WebhookTls | undefined {
  const { data } = content
  const text = isJsonObject(data) ? data[secretKey] : undefined
  if (typeof text !== 'string') return undefined
  try {
    const read: unknown = JSON.parse(Buffer.from(text, 'base64').toString())
    if (!isJsonObject(read)) return undefined
    const { authorities, server } = read
    const list: readonly unknown[] = Array.isArray(authorities) ? authorities : []
    if (!isKept(server) || list.length === 0 || !list.every(isKept)) return undefined
    return { authorities: list, server }
  } catch {
    return undefined
  }
}

const isKept = (value: unknown): value is KeptCertificate =>
  isJsonObject(value) && typeof value['certificate'] === 'string' && typeof value['privateKey'] === 'string'

async function untilWritten<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = attempts - 1; ; left -= 1) {
    try {
      return await attempt()
    } catch (error) {
      if (left === 0 || !(error instanceof GatewayError) || !lost.has(error.code)) throw error
    }
  }
}
