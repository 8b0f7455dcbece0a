import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import type { ScimConnection } from '#protocols/scim/client/scim-connection.ts'
import { readFeatures, type ServiceFeatures } from '#protocols/scim/client/service-features.ts'

const keptMillis = 10 * 60_000
const retryMillis = 30_000
const paths = ['/ServiceProviderConfig', '/ResourceTypes', '/Schemas'] as const

/** What the service says it can do (RFC 7644 4), asked once in a while. */
export class ServiceDiscovery {
  readonly #connection: ScimConnection
  readonly #clock: Clock
  readonly #log: Logger
  #known: ServiceFeatures | undefined
  #until = 0
  #asked: Promise<ServiceFeatures> | undefined

  constructor(connection: ScimConnection, clock: Clock, log: Logger) {
    this.#connection = connection
    this.#clock = clock
    this.#log = log
  }

  /** What was read last; undefined before that. */
  get known(): ServiceFeatures | undefined {
    return this.#known
  }

  /** Throws TARGET_UNREACHABLE while nothing is known of a service that does not answer. */
  async features(): Promise<ServiceFeatures> {
    const known = this.#known
    if (known !== undefined && this.#clock().getTime() < this.#until) return known
    this.#asked ??= this.#ask().finally(() => {
      this.#asked = undefined
    })
    if (known === undefined) return this.#asked
    // What is known serves until there is something newer.
    this.#asked.catch(() => {})
    return known
  }

  async #ask(): Promise<ServiceFeatures> {
    let kept = retryMillis
    try {
      const documents = await Promise.all(paths.map((path) => this.#document(path)))
      const [config, types, schemas] = documents.map((document) => (document === 'refused' ? undefined : document))
      this.#known = readFeatures(config, types, schemas)
      if (!documents.includes('refused')) kept = keptMillis
      return this.#known
    } finally {
      this.#until = this.#clock().getTime() + kept
    }
  }

  /** Undefined where the service does not tell; `refused` where it may tell when somebody has mended something. */
  async #document(path: string): Promise<JsonObject | 'refused' | undefined> {
    try {
      return (await this.#connection.call({ method: 'GET', path })).body
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE') throw error
      this.#log.warn('the SCIM service does not describe itself', { path, err: error })
      return error instanceof GatewayError && error.code === 'TARGET_FAILED' ? 'refused' : undefined
    }
  }
}
