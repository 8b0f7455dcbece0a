import type { EventMeter } from '#engine/events/event-meter.ts'
import {
  type DeliveryFailure,
  type DeliveryTimes,
  type DeliveryTurn,
  defaultTimes,
  LeasedDelivery,
} from '#engine/events/leased-delivery.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { PushOutcome } from '#protocols/secevent/event-pusher.ts'
import { signEventToken } from '#protocols/secevent/event-token.ts'
import type { KeySource } from '#sdk/module/host.ts'
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

/** Tokens that are pushed before they are removed together; as many may be pushed again after a crash. */
const batchSize = 20

/** Pushes the events of one stream, one at a time and in their order; of all processes, one does so at a time. */
export class Delivery {
  readonly #parts: DeliveryParts
  readonly #delivery: LeasedDelivery<{ readonly failures: number }>

  constructor(parts: DeliveryParts, times: Partial<DeliveryTimes> = {}) {
    const { stream, owner, store, clock, log, meter } = parts
    this.#parts = parts
    this.#delivery = new LeasedDelivery({
      clock,
      times: { ...defaultTimes, ...times },
      hasWork: async () => parts.receiver() !== undefined && (await store.read(stream, 1)).length > 0,
      claim: (lease) => store.claim(stream, owner, lease),
      release: (outcome) => store.release(stream, owner, outcome),
      deliver: (turn) => this.#deliver(turn),
      failed: ({ reason }, failures, rest) => {
        meter.counted(stream, 'failed', 1)
        const nextSeconds = Math.ceil(rest / 1000)
        log.warn('the receiver of events did not take one', { stream, reason, failures, nextSeconds })
      },
      broke: (err) => log.error('events could not be delivered', { stream, err }),
    })
  }

  /** Something was appended. */
  wake(): void {
    this.#delivery.wake()
  }

  /** A push under way is cut off; its event stays. */
  close(): Promise<void> {
    return this.#delivery.close()
  }

  async #deliver(turn: DeliveryTurn<unknown>): Promise<DeliveryFailure | undefined> {
    const { stream, store } = this.#parts
    const receiver = this.#parts.receiver()
    if (receiver === undefined) return undefined
    for (;;) {
      const events = await store.read(stream, batchSize)
      if (events.length === 0) return undefined
      const end = await this.#pushAll(events, receiver, turn)
      if (end === 'stopped') return undefined
      if (end !== undefined) return end
      turn.succeeded()
    }
  }

  /** Pushes events in their order and removes those that are dealt with; the failure that stopped it, if any. */
  async #pushAll(
    events: readonly StoredEvent[],
    receiver: Receiver,
    turn: DeliveryTurn<unknown>,
  ): Promise<DeliveryFailure | 'stopped' | undefined> {
    const { stream, store, clock, log, meter } = this.#parts
    const done: string[] = []
    try {
      for (const { id, key, claims } of events) {
        if (!(await turn.isOurs())) return 'stopped'
        const token = await signEventToken(claims, await this.#parts.keys.signingKey(key))
        const outcome = await receiver.push(token, turn.attempt(), clock())
        if (outcome.kind === 'failed') return turn.closing.aborted ? 'stopped' : outcome
        if (outcome.kind === 'refused')
          log.warn('an event was refused and dropped', { stream, id, reason: outcome.reason })
        meter.counted(stream, outcome.kind === 'accepted' ? 'delivered' : 'refused', 1)
        done.push(id)
        if (turn.closing.aborted) return 'stopped'
      }
      return undefined
    } finally {
      await store.remove(stream, done)
    }
  }
}
