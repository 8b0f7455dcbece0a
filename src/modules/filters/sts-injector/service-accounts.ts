import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import type { ClusterObjects } from '#sdk/target/kubernetes-cluster.ts'

export interface AccountAnnotations {
  readonly annotations: Readonly<Record<string, string>>
  /** Why they could not be read; they are then those of an earlier call, or none. */
  readonly problem?: string
}

export interface ServiceAccountOptions {
  readonly objects: Pick<ClusterObjects, 'get'>
  /** The only annotations that count. */
  readonly names: ReadonlySet<string>
  readonly clock: Clock
  readonly log: Logger
}

const mostAccounts = 10_000
const freshMillis = 10_000
/** While the API server does not answer. */
const staleMillis = 600_000
/** Of the five seconds that the API server gives a webhook. */
const longestWaitMillis = 2_000
/** After it did not answer, it isn't asked for so long. */
const pauseMillis = 5_000
/** Also against callers of the webhook who aren't the API server. */
const mostUnderway = 64
const longestAnnotation = 2_049
const objectName = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/

interface Known {
  readonly annotations: Readonly<Record<string, string>>
  readonly read: number
}

/** Annotations of service accounts, read from the cluster when a pod needs them and remembered for ten seconds. */
export class ServiceAccounts {
  readonly #options: ServiceAccountOptions
  readonly #known: BoundedCache<Known>
  readonly #underway = new Map<string, Promise<AccountAnnotations>>()
  #pausedUntil = 0

  constructor(options: ServiceAccountOptions) {
    this.#options = options
    this.#known = new BoundedCache(mostAccounts, options.clock)
  }

  /** Never rejects. */
  async annotationsOf(namespace: string, name: string): Promise<AccountAnnotations> {
    const key = JSON.stringify([namespace, name])
    const now = this.#options.clock().getTime()
    const known = this.#known.get(key)
    if (known !== undefined && now - known.read < freshMillis) return { annotations: known.annotations }
    if (now < this.#pausedUntil) return { annotations: known?.annotations ?? {}, problem: silence }
    let reading = this.#underway.get(key)
    if (reading === undefined) {
      if (!objectName.test(namespace) || !objectName.test(name))
        return { annotations: {}, problem: 'it has no valid name' }
      if (this.#underway.size >= mostUnderway) return { annotations: known?.annotations ?? {}, problem: silence }
      reading = this.#read(namespace, name, key, known).finally(() => this.#underway.delete(key))
      this.#underway.set(key, reading)
    }
    return reading
  }

  async #read(namespace: string, name: string, key: string, known: Known | undefined): Promise<AccountAnnotations> {
    const { objects, clock, log } = this.#options
    try {
      const resource = { group: '', version: 'v1', plural: 'serviceaccounts', namespace }
      const found = await withinTime(objects.get(resource, name))
      const annotations = this.#wanted(found?.content)
      const read = clock().getTime()
      this.#known.set(key, { annotations, read }, new Date(read + staleMillis))
      return { annotations }
    } catch (err) {
      const refused = err instanceof GatewayError && err.code === 'TARGET_FAILED'
      if (!refused) this.#pausedUntil = clock().getTime() + pauseMillis
      log.warn('a service account could not be read', { namespace, serviceAccount: name, err })
      return { annotations: known?.annotations ?? {}, problem: refused ? 'the API server refuses to show it' : silence }
    }
  }

  #wanted(content: Readonly<Record<string, unknown>> | undefined): Readonly<Record<string, string>> {
    const metadata = content?.['metadata']
    const all = isJsonObject(metadata) && isJsonObject(metadata['annotations']) ? metadata['annotations'] : {}
    return Object.fromEntries(
      Object.entries(all).flatMap(([name, value]): [string, string][] =>
        this.#options.names.has(name) && typeof value === 'string' ? [[name, value.slice(0, longestAnnotation)]] : [],
      ),
    )
  }
}

const silence = 'the API server did not answer'

async function withinTime<T>(call: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new GatewayError('TARGET_TIMEOUT', 'no answer in time')), longestWaitMillis)
  })
  try {
    return await Promise.race([call, late])
  } finally {
    clearTimeout(timer)
  }
}
