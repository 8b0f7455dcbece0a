import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'

export interface WaitingRoomOptions {
  readonly clock: Clock
  /** How many are served at once. More would finish no sooner, and hold memory meanwhile. */
  readonly atOnce?: number
  /** How many may wait. */
  readonly seats?: number
  /** Whoever waited longer is sent away, since nobody may be there any more: sidecars wait for an answer for ten seconds. */
  readonly longestMillis?: number
}

interface Guest {
  readonly since: number
  readonly enter: () => void
  readonly leave: (error: GatewayError) => void
}

const soonestSeconds = 1
const latestSeconds = 6

/** Serves a burst in the order in which it came, a few at a time, and asks those that it cannot seat to come back. */
export class WaitingRoom {
  readonly #options: Required<WaitingRoomOptions>
  readonly #line: Guest[] = []
  #served = 0

  constructor({ clock, atOnce = 64, seats = 10_000, longestMillis = 8_000 }: WaitingRoomOptions) {
    this.#options = { clock, atOnce, seats, longestMillis }
  }

  /** Throws TOO_MANY_REQUESTS for whom there is no seat, or who sat for too long. */
  async through<T>(service: () => Promise<T>): Promise<T> {
    if (this.#served < this.#options.atOnce) this.#served++
    else await this.#seated()
    try {
      return await service()
    } finally {
      this.#next()
    }
  }

  #seated(): Promise<void> {
    if (this.#line.length >= this.#options.seats) throw full('no seat is left')
    const since = this.#now()
    return new Promise((enter, leave) => this.#line.push({ since, enter, leave }))
  }

  #next(): void {
    for (let guest = this.#line.shift(); guest !== undefined; guest = this.#line.shift()) {
      if (this.#now() - guest.since <= this.#options.longestMillis) {
        guest.enter()
        return
      }
      guest.leave(full(`the wait was longer than ${this.#options.longestMillis} ms`))
    }
    this.#served--
  }

  #now(): number {
    return this.#options.clock().getTime()
  }
}

/** They come back at different times, so that they do not meet again. */
function full(detail: string): GatewayError {
  const retryAfter = soonestSeconds + Math.floor(Math.random() * (latestSeconds - soonestSeconds))
  return new GatewayError('TOO_MANY_REQUESTS', `too many workloads ask at once: ${detail}`, {
    retryAfter,
    keyword: 'slow_down',
    publicText: 'Too many workloads ask at once.',
  })
}
