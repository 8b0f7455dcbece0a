import type { SecretLookup } from '#config/context/secrets.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { AccessRefused } from '#protocols/kubernetes/api-failure.ts'
import type { ClusterObject, ClusterResource } from '#protocols/kubernetes/cluster.ts'

/** The part of an ObjectClient that secrets need: the right to read them by name. */
interface SecretObjects {
  get(resource: ClusterResource, name: string): Promise<ClusterObject | undefined>
}

interface Fetched {
  readonly version: string
  readonly values: ReadonlyMap<string, string>
}

const secretName = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/
const mostSecrets = 1_000
const callsAtOnce = 8
const none: Fetched = { version: '', values: new Map() }

/**
 * Secrets of one namespace, fetched one by one on demand, so that permission to read only these is enough. A
 * forbidden one counts as absent. Values are kept in memory only.
 */
export class KubernetesSecrets {
  readonly #objects: SecretObjects
  readonly #resource: ClusterResource
  readonly #log: Logger
  readonly #known = new Map<string, Fetched>()
  readonly #missing = new Set<string>()
  readonly #refused = new Set<string>()
  #refreshing: Promise<boolean> | undefined

  constructor(objects: SecretObjects, namespace: string, log: Logger) {
    this.#objects = objects
    this.#resource = { group: '', version: 'v1', plural: 'secrets', namespace }
    this.#log = log
  }

  /** An unknown one counts as absent, and the next `fetchMissing` fetches it. */
  readonly lookUp: SecretLookup = (name, key) => {
    const known = this.#known.get(name)
    if (known === undefined && secretName.test(name) && this.#known.size + this.#missing.size < mostSecrets) {
      this.#missing.add(name)
    }
    return known?.values.get(key)
  }

  /** False if there was nothing to fetch. Throws if the API server can't be reached. */
  async fetchMissing(): Promise<boolean> {
    const names = [...this.#missing]
    this.#missing.clear()
    await inParallel(names, callsAtOnce, async (name) => this.#known.set(name, await this.#fetch(name)))
    return names.length > 0
  }

  /**
   * Reads all requested Secrets again; true if one has changed. Keeps the known ones if it throws. Concurrent
   * callers share the result.
   */
  refresh(): Promise<boolean> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  async #refresh(): Promise<boolean> {
    let changed = false
    await inParallel([...this.#known.keys()], callsAtOnce, async (name) => {
      const fetched = await this.#fetch(name)
      if (fetched.version !== this.#known.get(name)?.version) changed = true
      this.#known.set(name, fetched)
    })
    return changed
  }

  async #fetch(name: string): Promise<Fetched> {
    let stored: ClusterObject | undefined
    try {
      stored = await this.#objects.get(this.#resource, name)
    } catch (error) {
      if (!(error instanceof AccessRefused)) throw error
      if (!this.#refused.has(name)) this.#log.info('a Secret may not be read and counts as absent', { name })
      this.#refused.add(name)
      return none
    }
    this.#refused.delete(name)
    if (stored === undefined) return none
    const { data } = stored.content
    const values = new Map<string, string>()
    for (const [key, text] of Object.entries(isJsonObject(data) ? data : {})) {
      if (typeof text === 'string') values.set(key, Buffer.from(text, 'base64').toString('utf8'))
    }
    return { version: `${stored.metadata.uid} ${stored.metadata.resourceVersion}`, values }
  }
}
