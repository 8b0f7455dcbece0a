import { webhookKeys } from '#config/configuration/sts-webhook.ts'
import type { Clock } from '#kernel/clock.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { KeyStore } from '#keys/key-store.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import { type WebhookOptions, webhookConfiguration } from '#protocols/admission/webhook-configuration.ts'
import {
  authoritiesOf,
  renewWebhookTls,
  type StoredAuthority,
  type StoredCertificate,
  type WebhookTls,
  withRegistration,
} from '#protocols/admission/webhook-tls.ts'
import type { ClusterObject } from '#protocols/kubernetes/cluster.ts'
import type { ClusterObjects } from '#sdk/target/kubernetes-cluster.ts'

export interface WebhookKeeperOptions {
  /** Has the CAs and the certificate, for all replicas. */
  readonly store: KeyStore
  readonly box: SecretBox
  readonly clock: Clock
  /** The names under which the API server calls the webhook. */
  readonly serverNames: readonly string[]
}

/** Objects of the cluster that calls the webhook. */
export type WebhookObjects = Pick<ClusterObjects, 'get' | 'create' | 'replace'>

const attempts = 5
/** Another writer created or changed the object first. */
const lost: ReadonlySet<ErrorCode> = new Set(['CONFLICT', 'VERSION_MISMATCH'])
const owner = JSON.stringify([webhookKeys, 'tls'])
const configurations = { group: 'admissionregistration.k8s.io', version: 'v1', plural: 'mutatingwebhookconfigurations' }

/**
 * The webhook's stored TLS data, created and renewed when due. Any number of replicas may do so at once: the first
 * write wins, and the others read it.
 */
export function keepWebhookTls(options: WebhookKeeperOptions): Promise<WebhookTls> {
  const { serverNames, clock } = options
  return changeTls(options, (present) => renewWebhookTls(present, serverNames, clock()))
}

/** Writes the CA bundle into the API server's webhook configuration, and records that it knows the CAs. */
export async function registerWebhook(
  options: WebhookKeeperOptions,
  tls: WebhookTls,
  webhook: Omit<WebhookOptions, 'certificates'>,
  objects: WebhookObjects,
): Promise<void> {
  const wanted = webhookConfiguration({ ...webhook, certificates: authoritiesOf(tls) })
  await untilWritten(() => keepConfiguration(webhook.name, wanted, objects))
  if (withRegistration(tls, options.clock()) === tls) return
  const registered = new Set(tls.authorities.map(({ certificate }) => certificate))
  await changeTls(options, (present) => {
    if (present === undefined || !present.authorities.every(({ certificate }) => registered.has(certificate)))
      return present
    return withRegistration(present, options.clock())
  })
}

async function changeTls<T extends WebhookTls | undefined>(
  { store, box }: WebhookKeeperOptions,
  change: (present: WebhookTls | undefined) => T,
): Promise<T> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const stored = await store.get(webhookKeys)
    const present = stored === undefined ? undefined : await readTls(stored.ring, box)
    const tls = change(present)
    if (tls === undefined || tls === present) return tls
    const sealed = await box.seal(toJson(tls), owner)
    if (await store.swap(webhookKeys, stored?.version ?? 0, { sealed })) return tls
  }
  throw new GatewayError('CONFLICT', 'the certificates of the webhook are being changed by others')
}

/** Everything but the webhooks stays: it may belong to the owner of the object. */
async function keepConfiguration(name: string, wanted: JsonObject, objects: WebhookObjects): Promise<void> {
  const stored = await objects.get(configurations, name)
  if (stored === undefined) {
    await objects.create(configurations, wanted)
  } else if (!isWithin(wanted['webhooks'], stored.content['webhooks'] ?? [])) {
    await objects.replace(configurations, name, { ...wanted, metadata: metadataOf(name, stored) })
  }
}

/** Kubernetes adds defaults, so the object may have more than we wrote. */
function isWithin(wanted: unknown, present: unknown): boolean {
  if (Array.isArray(wanted)) {
    const list: readonly unknown[] = wanted
    if (!Array.isArray(present)) return false
    const found: readonly unknown[] = present
    return list.length === found.length && list.every((value, position) => isWithin(value, found[position]))
  }
  if (isJsonObject(wanted)) {
    return isJsonObject(present) && Object.entries(wanted).every(([name, value]) => isWithin(value, present[name]))
  }
  return wanted === present
}

function metadataOf(name: string, { metadata, content }: ClusterObject): Readonly<Record<string, unknown>> {
  const { labels, annotations, ownerReferences, finalizers } = isJsonObject(content['metadata'])
    ? content['metadata']
    : ({} as JsonObject)
  const kept = Object.entries({ labels, annotations, ownerReferences, finalizers }).filter(([, v]) => v !== undefined)
  return { ...Object.fromEntries(kept), name, resourceVersion: metadata.resourceVersion }
}

/** Data that can't be decrypted is not re-created: another replica may have the key. */
async function readTls({ sealed }: JsonObject, box: SecretBox): Promise<WebhookTls> {
  if (typeof sealed !== 'string') throw damaged()
  const { authorities, server } = await box.open(sealed, owner)
  const list: readonly JsonValue[] = Array.isArray(authorities) ? authorities : []
  if (!isKept(server) || list.length === 0 || !list.every(isAuthority)) throw damaged()
  return { authorities: list, server }
}

const damaged = (): GatewayError => new GatewayError('INTERNAL', 'the stored certificates of the webhook are damaged')

const toJson = ({ authorities, server }: WebhookTls): JsonObject => ({
  authorities: authorities.map(({ registered, ...kept }) =>
    registered === undefined ? { ...kept } : { ...kept, registered },
  ),
  server: { ...server },
})

const isKept = (value: unknown): value is JsonObject & StoredCertificate =>
  isJsonObject(value) && typeof value['certificate'] === 'string' && typeof value['privateKey'] === 'string'

const isAuthority = (value: unknown): value is JsonObject & StoredAuthority =>
  isKept(value) && (value['registered'] === undefined || typeof value['registered'] === 'number')

async function untilWritten<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = attempts - 1; ; left -= 1) {
    try {
      return await attempt()
    } catch (error) {
      if (left === 0 || !(error instanceof GatewayError) || !lost.has(error.code)) throw error
    }
  }
}
