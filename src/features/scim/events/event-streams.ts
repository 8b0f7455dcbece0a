import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import {
  type DeliveryFailure,
  type DeliveryTimes,
  type DeliveryTurn,
  defaultTimes,
  LeasedDelivery,
} from '#kernel/leased-delivery.ts'
import type { Logger } from '#kernel/logger.ts'
import { type SpanStart, tracer } from '#kernel/tracing.ts'
import { EventPusher, eventClaims, type PushOutcome, signEventToken } from '#protocols/secevent/event-pusher.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import type { EventStore, StoredEvent } from './event-store.ts'
import type { EventPoll, EventStreamOptions, PolledEvents, SecurityEvent } from './event-stream.ts'

interface EventStreamParts {
  readonly store: EventStore
  readonly keys: KeySource
  readonly clock: Clock
  readonly log: Logger
  readonly meter: EventMeter
  /** Whether this process delivers; one that only validates a configuration does not. */
  readonly delivers: boolean
  readonly times?: Partial<DeliveryTimes>
}

/** The maximum size of a stream; beyond it the oldest events are dropped. */
const maxWaiting = 100_000
const maxAgeMillis = 7 * 24 * 3600_000
const trimEveryMillis = 10_000

interface Opened {
  readonly options: EventStreamOptions
  readonly pusher: EventPusher | undefined
}

interface Line {
  /** The configurations that have the stream open; the latest decides the receiver. */
  readonly openers: Opened[]
  readonly delivery: Delivery | undefined
}

/** The event streams of this process, across configurations. */
export class EventStreams {
  readonly #parts: EventStreamParts
  readonly #owner = newId()
  readonly #lines = new Map<string, Line>()
  readonly #waiters = new StreamWaiters()
  readonly #trimmer: NodeJS.Timeout | undefined

  constructor(parts: EventStreamParts) {
    this.#parts = parts
    if (!parts.delivers) return
    this.#trimmer = setInterval(() => void this.trim(), trimEveryMillis)
    this.#trimmer.unref()
  }

  /** A stream that delivers events to its receiver, durably and in order. The caller closes it. */
  open(options: EventStreamOptions) {
    const { name, push } = options
    const opened: Opened = { options, pusher: push && new EventPusher(push.url, push.token) }
    const line = this.#lines.get(name) ?? this.#newLine(name)
    line.openers.push(opened)
    line.delivery?.wake()
    return {
      /** Resolves when the events are durable, in this order and after all earlier ones. */
      append: (events: readonly SecurityEvent[]): Promise<void> => this.#append(options, events),
      close: (): Promise<void> => this.#close(name, opened),
    }
  }

  #newLine(stream: string): Line {
    const openers: Opened[] = []
    const { store, keys, clock, log, meter, delivers, times } = this.#parts
    const receiver = () => openers.at(-1)?.pusher
    const parts = { stream, owner: this.#owner, store, keys, clock, log, meter, receiver }
    const line = { openers, delivery: delivers ? new Delivery(parts, times) : undefined }
    this.#lines.set(stream, line)
    return line
  }

  async #append({ name, issuer, audience, key }: EventStreamOptions, events: readonly SecurityEvent[]): Promise<void> {
    const { store, clock, meter } = this.#parts
    const time = clock()
    const stored = events.map(({ transaction, subject, events: payloads }) => {
      const id = newId()
      const claims = eventClaims({ issuer, audience, id, issued: time, transaction, subject, events: payloads })
      return { id, time, key, claims }
    })
    await store.append(name, stored)
    meter.counted(name, 'appended', stored.length)
    this.#lines.get(name)?.delivery?.wake()
    this.#waiters.wake(name)
  }

  async #close(name: string, opened: Opened): Promise<void> {
    const line = this.#lines.get(name)
    if (line === undefined || !line.openers.includes(opened)) return
    line.openers.splice(line.openers.indexOf(opened), 1)
    if (line.openers.length === 0) {
      this.#lines.delete(name)
      await line.delivery?.close()
    }
    opened.pusher?.close()
  }

  /** Throws TOO_MANY_REQUESTS if too many wait for the stream. */
  async poll(stream: string, poll: EventPoll): Promise<PolledEvents> {
    const { store, meter, log } = this.#parts
    for (const [id, error] of poll.refused) log.warn('an event was refused and dropped', { stream, id, ...error })
    meter.counted(stream, 'refused', await store.remove(stream, [...poll.refused.keys()]))
    meter.counted(stream, 'delivered', await store.remove(stream, poll.acknowledged))
    if (poll.max === 0) return { tokens: new Map(), more: false }
    const found = await this.#waiters.until(
      stream,
      async () => {
        const events = await store.read(stream, poll.max + 1)
        return events.length === 0 ? undefined : events
      },
      poll.waitMillis,
      poll.signal,
    )
    const tokens = new Map<string, string>()
    for (const { id, key, claims } of (found ?? []).slice(0, poll.max)) {
      tokens.set(id, await signEventToken(claims, await this.#parts.keys.signingKey(key)))
    }
    return { tokens, more: (found?.length ?? 0) > poll.max }
  }

  /** Drops events that are too many or too old, with a warning, even of streams that are no longer open. */
  async trim(): Promise<void> {
    const { store, clock, log, meter } = this.#parts
    try {
      for (const stream of await store.names()) {
        const now = clock()
        const limits = { keep: maxWaiting, since: new Date(now.getTime() - maxAgeMillis) }
        const { dropped, oldest } = await store.trim(stream, limits)
        meter.oldest(stream, oldest === undefined ? 0 : Math.max(0, now.getTime() - oldest.getTime()) / 1000)
        if (dropped === 0) continue
        meter.counted(stream, 'dropped', dropped)
        log.warn('events were dropped: their receiver did not take them in time', { stream, dropped })
      }
    } catch (err) {
      log.warn('events could not be trimmed', { err })
    }
  }

  /** Answers all waiting polls now, and lets no further poll wait. */
  drain(): void {
    this.#waiters.close()
  }

  async close(): Promise<void> {
    clearInterval(this.#trimmer)
    this.drain()
    const lines = [...this.#lines]
    this.#lines.clear()
    await Promise.all(
      lines.map(async ([, { openers, delivery }]) => {
        await delivery?.close()
        for (const { pusher } of openers) pusher?.close()
      }),
    )
  }
}

/** The maximum number of polls that wait for one stream. */
const maxWaiters = 16
/** How often to look for events of other processes. */
const lookEveryMillis = 1000

/** The polls that wait for events of a stream. */
class StreamWaiters {
  readonly #waiting = new Map<string, Set<() => void>>()
  #closed = false

  /** The result of `look`, as soon as there is one; undefined when the time is up or the signal fires. */
  async until<T>(
    stream: string,
    look: () => Promise<T | undefined>,
    millis: number,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const deadline = performance.now() + millis
    const waiting = this.#waiting.get(stream) ?? new Set()
    this.#waiting.set(stream, waiting)
    let wake: () => void = () => {}
    const waiter = () => wake()
    if (millis > 0 && waiting.size >= maxWaiters) {
      throw new GatewayError('TOO_MANY_REQUESTS', `${waiting.size} wait for stream ${stream}`, { retryAfter: 5 })
    }
    waiting.add(waiter)
    try {
      for (;;) {
        let woken = false
        const next = new Promise<void>((resolve) => {
          wake = () => {
            woken = true
            resolve()
          }
        })
        const found = await look()
        const left = deadline - performance.now()
        if (found !== undefined || left <= 0 || this.#closed || signal.aborted) return found
        if (!woken) await nap(next, Math.min(left, lookEveryMillis), signal)
      }
    } finally {
      waiting.delete(waiter)
      if (waiting.size === 0) this.#waiting.delete(stream)
    }
  }

  wake(stream: string): void {
    for (const waiter of this.#waiting.get(stream) ?? []) waiter()
  }

  /** Every waiting poll looks a last time and returns. */
  close(): void {
    this.#closed = true
    for (const stream of this.#waiting.keys()) this.wake(stream)
  }
}

function nap(woken: Promise<void>, millis: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, millis)
    signal.addEventListener('abort', end)
    void woken.then(end)
  })
}

const pushSpan = (stream: string, id: string): SpanStart => ({
  name: `push event ${stream}`,
  kind: 'consumer',
  parent: 'none',
  attributes: { 'gatehouse.stream': stream, 'gatehouse.event.id': id },
})

/** One receiver of pushed tokens. */
export interface Receiver {
  push(token: string, signal: AbortSignal, now: Date): Promise<PushOutcome>
}

interface DeliveryParts {
  readonly stream: string
  /** Identifies this process among others that deliver the same stream. */
  readonly owner: string
  readonly store: EventStore
  readonly keys: KeySource
  readonly clock: Clock
  readonly log: Logger
  readonly meter: EventMeter
  /** Read again for each turn, since a configuration may change it. */
  receiver(): Receiver | undefined
}

/** How many tokens are pushed before they are removed together; after a crash as many may be pushed again. */
const batchSize = 20

/** Pushes the events of one stream in order, one at a time; only one process at a time does so. */
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

  /** Call after appending. */
  wake(): void {
    this.#delivery.wake()
  }

  /** Aborts a running push; its event stays. */
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

  /** Pushes events in order and removes the finished ones. Returns the failure that stopped it, if any. */
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
        const push = (): Promise<PushOutcome> => receiver.push(token, turn.attempt(), clock())
        const outcome = await (tracer === undefined ? push() : tracer.span(pushSpan(stream, id), push))
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

/**
 * What happened to events: stored, accepted by a receiver, rejected for good, or dropped because there were too
 * many.
 */
export type EventOutcome = 'appended' | 'delivered' | 'refused' | 'dropped' | 'failed'

export interface EventMeter {
  /** `failed` counts attempts, the others count events. */
  counted(stream: string, outcome: EventOutcome, events: number): void
  /** The age of the oldest waiting event; 0 if none waits. */
  oldest(stream: string, seconds: number): void
}

export const noMeter: EventMeter = { counted() {}, oldest() {} }
