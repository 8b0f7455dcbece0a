import { GatewayError } from '#kernel/errors.ts'

export interface TurnLimits {
  /** At the same time, by this process. */
  readonly all: number
  readonly ofOne: number
  /** For whoever has to wait. */
  readonly publicText: string
  /** Seconds. */
  readonly retryAfter: number
}

/** Keeps a few people whose requests take long from taking what others need. */
export class Turns {
  readonly #limits: TurnLimits
  readonly #held = new Map<string, number>()
  #all = 0

  constructor(limits: TurnLimits) {
    this.#limits = limits
  }

  /** Gives what ends the turn, which may be called again. TOO_MANY_REQUESTS when there are enough. */
  take(login: string): () => void {
    const { all, ofOne, publicText, retryAfter } = this.#limits
    const own = this.#held.get(login) ?? 0
    if (this.#all >= all || own >= ofOne) {
      const detail = `"${login}" has ${own} under way, all ${this.#all}`
      throw new GatewayError('TOO_MANY_REQUESTS', detail, { publicText, retryAfter })
    }
    this.#all++
    this.#held.set(login, own + 1)
    let held = true
    return () => {
      if (!held) return
      held = false
      this.#all--
      const left = (this.#held.get(login) ?? 1) - 1
      if (left > 0) this.#held.set(login, left)
      else this.#held.delete(login)
    }
  }
}
