import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { ClusterObject, ClusterResource } from './cluster.ts'

/** The part of an ObjectClient that an election needs. */
export interface LeaseObjects {
  get(resource: ClusterResource, name: string): Promise<ClusterObject | undefined>
  create(resource: ClusterResource, object: JsonObject): Promise<ClusterObject>
  replace(resource: ClusterResource, name: string, object: JsonObject): Promise<ClusterObject>
}

interface LeadershipOptions {
  readonly objects: LeaseObjects
  readonly namespace: string
  readonly name: string
  /** Identifies this process; must be unique. */
  readonly identity: string
  readonly clock: Clock
  readonly times?: LeadershipTimes
  onGain(): void
  /** Called for failures to read or renew; it continues. */
  onError(error: unknown): void
}

interface LeadershipTimes {
  /** How long an unresponsive leader stays the leader. */
  readonly leaseMillis: number
  readonly renewMillis: number
}

const usualTimes: LeadershipTimes = { leaseMillis: 15_000, renewMillis: 4_000 }

interface Seen {
  readonly version: string
  readonly at: number
}

/**
 * Elects one of many processes as the leader, by a Lease. A lease is taken over if it has not been renewed for its
 * duration by this process's own clock; clocks are never compared. A leader that can't renew in time stops leading.
 */
export class Leadership {
  readonly #options: LeadershipOptions
  readonly #times: LeadershipTimes
  readonly #resource: ClusterResource
  readonly #stopping = new AbortController()
  #seen: Seen | undefined
  #leadsUntil = 0
  #running: Promise<void> | undefined

  constructor(options: LeadershipOptions) {
    this.#options = options
    this.#times = options.times ?? usualTimes
    const { namespace } = options
    this.#resource = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', namespace }
  }

  get isLeader(): boolean {
    return performance.now() < this.#leadsUntil
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Gives the lease back, so that another process need not wait for its end. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#running
    // Also after a late renewal: the lease still names this process.
    if (this.#leadsUntil > 0) await this.#release().catch(() => {})
    this.#leadsUntil = 0
  }

  /** Waits, at most as long as a lease lasts, for the lease of a leader that ended without giving it back. */
  async succeed(): Promise<boolean> {
    const giveUpAt = performance.now() + this.#times.leaseMillis + this.#times.renewMillis
    let holders: Seen | undefined
    while (!(await this.attempt())) {
      const isRenewed = holders !== undefined && this.#seen?.version !== holders.version
      if (isRenewed || this.#seen === undefined || performance.now() > giveUpAt) return false
      holders = this.#seen
      await delay(this.#times.renewMillis / 4)
    }
    return true
  }

  /** Tries once to become or to stay the leader. */
  async attempt(): Promise<boolean> {
    const wasLeader = this.isLeader
    const began = performance.now()
    try {
      // After a slow call, the rest of the lease counts from before the call.
      if (await this.#take()) this.#leadsUntil = began + this.#times.leaseMillis * 0.8
      else this.#leadsUntil = 0
    } catch (error) {
      if (!isLost(error)) this.#options.onError(error)
    }
    if (this.isLeader && !wasLeader) this.#options.onGain()
    return this.isLeader
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.attempt()
      const pause = this.#times.renewMillis * (0.75 + Math.random() / 2)
      await delay(pause, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  async #take(): Promise<boolean> {
    const { objects, name, identity } = this.#options
    const found = await objects.get(this.#resource, name)
    if (found === undefined) {
      await objects.create(this.#resource, this.#lease(identity, undefined))
      return true
    }
    const { version } = this.#look(found)
    const holder = holderOf(found)
    const isFree = holder === '' || holder === identity || this.#isExpired(version)
    if (!isFree) return false
    await objects.replace(this.#resource, name, this.#lease(identity, found))
    return true
  }

  #look(found: ClusterObject): Seen {
    const version = found.metadata.resourceVersion
    if (this.#seen?.version !== version) this.#seen = { version, at: performance.now() }
    return this.#seen ?? { version, at: performance.now() }
  }

  #isExpired(version: string): boolean {
    return this.#seen?.version === version && performance.now() - this.#seen.at > this.#times.leaseMillis
  }

  async #release(): Promise<void> {
    const { objects, name, identity } = this.#options
    const found = await objects.get(this.#resource, name)
    if (found === undefined || holderOf(found) !== identity) return
    await objects.replace(this.#resource, name, this.#lease('', found))
  }

  #lease(holder: string, stored: ClusterObject | undefined): JsonObject {
    const now = this.#options.clock().toISOString().replace(/Z$/, '000Z')
    const { name, namespace } = this.#options
    const isSame = stored !== undefined && holderOf(stored) === holder
    const acquireTime = isSame ? textIn(stored, 'acquireTime') : now
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name,
        namespace,
        ...(stored === undefined ? {} : { resourceVersion: stored.metadata.resourceVersion }),
      },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: Math.max(1, Math.ceil(this.#times.leaseMillis / 1000)),
        acquireTime: acquireTime === '' ? now : acquireTime,
        renewTime: now,
      },
    }
  }
}

function textIn({ content }: ClusterObject, field: string): string {
  const { spec } = content
  const value = isJsonObject(spec) ? spec[field] : undefined
  return typeof value === 'string' ? value : ''
}

const holderOf = (stored: ClusterObject): string => textIn(stored, 'holderIdentity')

/** Another process was faster; that is not a failure. */
const isLost = (error: unknown): boolean =>
  error instanceof GatewayError && (error.code === 'CONFLICT' || error.code === 'VERSION_MISMATCH')
