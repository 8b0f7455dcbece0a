import type { EventMeter } from '#engine/events/event-meter.ts'
import { retryDelay } from '#engine/events/retry-delay.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { PushOutcome } from '#protocols/secevent/event-pusher.ts'
import { signEventToken } from '#protocols/secevent/event-token.ts'
import type { KeySource } from '#sdk/host.ts'
import type { EventStore, StoredEvent } from '#storage/event-store.ts'

/** One receiver of pushed tokens. */
export interface Receiver {
  push(token: string, signal: AbortSignal, now: Date): Promise<PushOutcome>
}

export interface DeliveryParts {
  readonly stream: string
  /** Tells this process from others that deliver the same stream. */
  readonly owner: string
  readonly store: EventStore
  readonly keys: KeySource
  readonly clock: Clock
  readonly log: Logger
  readonly meter: EventMeter
  /** Asked anew for each turn, since a configuration may change it. */
  receiver(): Receiver | undefined
}

export interface DeliveryTimes {
  /** How often to look without being woken: for what another process stored and did not deliver. */
  readonly idleMillis: number
  readonly pushMillis: number
  readonly leaseMillis: number
}

const defaultTimes: DeliveryTimes = { idleMillis: 5000, pushMillis: 10_000, leaseMillis: 30_000 }
/** Tokens that are pushed before they are removed together; as many may be pushed again after a crash. */
const batchSize = 20

/** Pushes the events of one stream, one at a time and in their order; of all processes, one does so at a time. */
export class Delivery {
  readonly #parts: DeliveryParts
  readonly #times: DeliveryTimes
  readonly #closing = new AbortController()
  readonly #done: Promise<void>
  #wake: (() => void) | undefined
  #woken = false
  #restUntil = 0
  #claimedAt = 0

  constructor(parts: DeliveryParts, times: Partial<DeliveryTimes> = {}) {
    this.#parts = parts
    this.#times = { ...defaultTimes, ...times }
    this.#done = this.#run()
  }

  /** Something was appended. */
  wake(): void {
    this.#woken = true
    if (this.#parts.clock().getTime() >= this.#restUntil) this.#wake?.()
  }

  /** A push under way is cut off; its event stays. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#wake?.()
    await this.#done
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      let rest: number
      try {
        this.#woken = false
        rest = await this.#turn()
      } catch (err) {
        this.#parts.log.error('events could not be delivered', { stream: this.#parts.stream, err })
        rest = this.#times.idleMillis
      }
      await this.#sleep(rest)
    }
  }

  /** Resting after a failure is not cut short by new events, waiting for events is. */
  #sleep(rest: number): Promise<void> {
    const resting = this.#parts.clock().getTime() < this.#restUntil
    if (this.#closed || (this.#woken && !resting)) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(end, rest)
      timer.unref()
      this.#wake = end
      function end(): void {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Delivers what there is; how long to rest then. */
  async #turn(): Promise<number> {
    const { stream, owner, store } = this.#parts
    const receiver = this.#parts.receiver()
    if (receiver === undefined || (await store.read(stream, 1)).length === 0) return this.#times.idleMillis
    const turn = await this.#claim()
    if (turn === undefined) return this.#times.idleMillis
    let { failures } = turn
    try {
      for (;;) {
        const events = await store.read(stream, batchSize)
        if (events.length === 0) break
        const failure = await this.#pushAll(events, receiver)
        if (failure === undefined) {
          failures = 0
          continue
        }
        if (failure === 'stopped') break
        failures++
        return await this.#rest(failures, failure)
      }
    } catch (error) {
      await store.release(stream, owner, { failures }).catch(() => {})
      throw error
    }
    await store.release(stream, owner, { failures })
    return this.#times.idleMillis
  }

  async #rest(failures: number, { reason, retryAfterMillis }: PushOutcome & { kind: 'failed' }): Promise<number> {
    const { stream, owner, store, clock, log, meter } = this.#parts
    const rest = retryDelay(failures, retryAfterMillis)
    this.#restUntil = clock().getTime() + rest
    meter.counted(stream, 'failed', 1)
    log.warn('the receiver of events did not take one', {
      stream,
      reason,
      failures,
      nextSeconds: Math.ceil(rest / 1000),
    })
    await store.release(stream, owner, { failures, retryAt: new Date(this.#restUntil) })
    return rest
  }

  /** Pushes events in their order and removes those that are dealt with; the failure that stopped it, if any. */
  async #pushAll(
    events: readonly StoredEvent[],
    receiver: Receiver,
  ): Promise<(PushOutcome & { kind: 'failed' }) | 'stopped' | undefined> {
    const { stream, store, clock, log, meter } = this.#parts
    const done: string[] = []
    try {
      for (const { id, key, claims } of events) {
        if (!(await this.#isOurTurn())) return 'stopped'
        const token = await signEventToken(claims, await this.#parts.keys.signingKey(key))
        const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(this.#times.pushMillis)])
        const outcome = await receiver.push(token, signal, clock())
        if (outcome.kind === 'failed') return this.#closed ? 'stopped' : outcome
        if (outcome.kind === 'refused')
          log.warn('an event was refused and dropped', { stream, id, reason: outcome.reason })
        meter.counted(stream, outcome.kind === 'accepted' ? 'delivered' : 'refused', 1)
        done.push(id)
        if (this.#closed) return 'stopped'
      }
      return undefined
    } finally {
      await store.remove(stream, done)
    }
  }

  #claim() {
    const { stream, owner, store, clock } = this.#parts
    const now = clock()
    this.#claimedAt = now.getTime()
    return store.claim(stream, owner, { now, until: new Date(now.getTime() + this.#times.leaseMillis) })
  }

  /** Prolongs the turn early enough that a push never outlasts it. */
  async #isOurTurn(): Promise<boolean> {
    const age = this.#parts.clock().getTime() - this.#claimedAt
    return age < this.#times.leaseMillis / 3 || (await this.#claim()) !== undefined
  }
}
