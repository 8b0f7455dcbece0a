import { GatewayError } from '#kernel/errors.ts'

/** Reports that are run at the same time, by this process. */
const atOnce = 4
const atOnceForOne = 2

/** Keeps a few people with large reports from taking what others need. */
export class ReportTurns {
  readonly #held = new Map<string, number>()
  #all = 0

  /** Gives what ends the turn, which may be called again. TOO_MANY_REQUESTS when there are enough. */
  take(login: string): () => void {
    const own = this.#held.get(login) ?? 0
    if (this.#all >= atOnce || own >= atOnceForOne) {
      const publicText = 'Other reports are being made. Try again in a moment.'
      throw new GatewayError('TOO_MANY_REQUESTS', `"${login}" has ${own} reports under way, all ${this.#all}`, {
        publicText,
        retryAfter: 5,
      })
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
