import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { Logger } from '#kernel/logger.ts'
import type { ClusterObjects } from '#sdk/target/kubernetes-cluster.ts'

interface AccountAnnotations {
  readonly annotations: Readonly<Record<string, string>>
  /** Why they could not be read; they then come from an earlier call, or are empty. */
  readonly problem?: string
}

interface ServiceAccountOptions {
  readonly objects: Pick<ClusterObjects, 'get'>
  /** Whether the annotation of this name counts. */
  isRead(name: string): boolean
  readonly clock: Clock
  readonly log: Logger
}

const mostAccounts = 10_000
/** Used while the API server does not answer. */
const staleMillis = 600_000
/** Of the five seconds that the API server gives a webhook. */
const longestWaitMillis = 2_000
/** After a call without an answer, the API server isn't called for this long. */
const pauseMillis = 5_000
/** Also against callers of the webhook who aren't the API server. */
const maxReads = 64
const mostWaiting = 1_000
const mostAnnotations = 100
const longestAnnotation = 2_049
const objectName = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/
const silence = 'the API server did not answer'

type Annotations = AccountAnnotations['annotations']

/**
 * Annotations of service accounts, as the cluster has them when a pod is reviewed: a change that came before the pod
 * counts. Pods of one account that are reviewed meanwhile share the next read. Earlier annotations count only while
 * the API server does not answer.
 */
export class ServiceAccounts {
  readonly #options: ServiceAccountOptions
  readonly #known: BoundedCache<Annotations>
  /** Reads that began, and those that begin after them, by account. */
  readonly #running = new Map<string, Promise<AccountAnnotations>>()
  readonly #next = new Map<string, Promise<AccountAnnotations>>()
  readonly #turns = new KeyedQueue({ width: maxReads, maxPerKey: mostWaiting, waitMillis: longestWaitMillis })
  #pausedUntil = 0

  constructor(options: ServiceAccountOptions) {
    this.#options = options
    this.#known = new BoundedCache(mostAccounts, options.clock)
  }

  /** By a read that begins after this call. Never rejects. */
  async annotationsOf(namespace: string, name: string): Promise<AccountAnnotations> {
    if (!objectName.test(namespace) || !objectName.test(name)) {
      return { annotations: {}, problem: 'it has no valid name' }
    }
    const key = JSON.stringify([namespace, name])
    const waiting = this.#next.get(key)
    if (waiting !== undefined) return waiting
    const running = this.#running.get(key)
    if (running === undefined) return this.#start(namespace, name, key)
    const next = running.then(() => {
      this.#next.delete(key)
      return this.#start(namespace, name, key)
    })
    this.#next.set(key, next)
    return next
  }

  #start(namespace: string, name: string, key: string): Promise<AccountAnnotations> {
    const reading = this.#inTurn(namespace, name, key).finally(() => this.#running.delete(key))
    this.#running.set(key, reading)
    return reading
  }

  async #inTurn(namespace: string, name: string, key: string): Promise<AccountAnnotations> {
    const earlier = (problem: string) => ({ annotations: this.#known.get(key) ?? {}, problem })
    const { clock } = this.#options
    if (clock().getTime() < this.#pausedUntil) return earlier(silence)
    let leave: () => void
    try {
      leave = await this.#turns.enter('')
    } catch {
      return earlier('too many ServiceAccounts are read at once')
    }
    try {
      // Others may have learned meanwhile that the API server does not answer.
      return clock().getTime() < this.#pausedUntil ? earlier(silence) : await this.#read(namespace, name, key)
    } finally {
      leave()
    }
  }

  async #read(namespace: string, name: string, key: string): Promise<AccountAnnotations> {
    const { objects, clock, log } = this.#options
    try {
      const resource = { group: '', version: 'v1', plural: 'serviceaccounts', namespace }
      const found = await withinTime(objects.get(resource, name))
      const annotations = this.#wanted(found?.content)
      this.#known.set(key, annotations, new Date(clock().getTime() + staleMillis))
      return { annotations }
    } catch (err) {
      const refused = err instanceof GatewayError && err.code === 'TARGET_FAILED'
      if (!refused) this.#pausedUntil = clock().getTime() + pauseMillis
      log.warn('a service account could not be read', { namespace, serviceAccount: name, err })
      const problem = refused ? 'the API server refuses to show it' : silence
      return { annotations: this.#known.get(key) ?? {}, problem }
    }
  }

  #wanted(content: Readonly<Record<string, unknown>> | undefined): Annotations {
    const metadata = content?.['metadata']
    const all = isJsonObject(metadata) && isJsonObject(metadata['annotations']) ? metadata['annotations'] : {}
    return Object.fromEntries(
      Object.entries(all)
        .flatMap(([name, value]): [string, string][] =>
          this.#options.isRead(name) && typeof value === 'string' ? [[name, value.slice(0, longestAnnotation)]] : [],
        )
        .slice(0, mostAnnotations),
    )
  }
}

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
