import { Delivery } from '#engine/events/delivery.ts'
import type { EventMeter } from '#engine/events/event-meter.ts'
import type { DeliveryTimes } from '#engine/events/leased-delivery.ts'
import { StreamWaiters } from '#engine/events/stream-waiters.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import { EventPusher } from '#protocols/secevent/event-pusher.ts'
import { eventClaims, signEventToken } from '#protocols/secevent/event-token.ts'
import type {
  EventPoll,
  EventStream,
  EventStreamOptions,
  PolledEvents,
  SecurityEvent,
} from '#sdk/filter/event-stream.ts'
import type { KeySource } from '#sdk/module/host.ts'
import type { EventStore } from '#storage/event-store.ts'

export interface EventStreamParts {
  readonly store: EventStore
  readonly keys: KeySource
  readonly clock: Clock
  readonly log: Logger
  readonly meter: EventMeter
  /** Whether this process delivers; one that only looks at a configuration does not. */
  readonly delivers: boolean
  readonly times?: Partial<DeliveryTimes>
}

/** What a stream keeps at most; beyond it the oldest events are dropped. */
const maxWaiting = 100_000
const maxAgeMillis = 7 * 24 * 3600_000
const trimEveryMillis = 10_000

interface Opened {
  readonly options: EventStreamOptions
  readonly pusher: EventPusher | undefined
}

interface Line {
  /** By whom the stream is open; the latest decides where it is pushed to. */
  readonly openers: Opened[]
  readonly delivery: Delivery | undefined
}

/** The streams of events of this process, across configurations. */
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

  open(options: EventStreamOptions): EventStream {
    const { name, push } = options
    const opened: Opened = { options, pusher: push && new EventPusher(push.url, push.token) }
    const line = this.#lines.get(name) ?? this.#newLine(name)
    line.openers.push(opened)
    line.delivery?.wake()
    return {
      append: (events) => this.#append(options, events),
      close: () => this.#close(name, opened),
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

  async poll(stream: string, poll: EventPoll): Promise<PolledEvents> {
    const { store, meter, log } = this.#parts
    for (const [id, told] of poll.refused) log.warn('an event was refused and dropped', { stream, id, ...told })
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

  /** Drops what is too much or too old, with a warning, also of streams that nobody has open any more. */
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

  /** Whoever waits for events is answered now, and nobody waits any more. */
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
