import type { Closable } from '#kernel/scope.ts'

interface PolledListenersOptions<L> {
  readonly everyMillis: number
  /** Looks for changes and calls the listeners. Must not throw. */
  readonly look: (listeners: ReadonlySet<L>) => Promise<void>
  /** The last listener has left, and no look is under way. */
  readonly idle: () => void
}

/** Looks for changes at an interval while someone listens. */
export class PolledListeners<L extends { ended(): void }> implements Closable {
  readonly #options: PolledListenersOptions<L>
  readonly #listeners = new Set<L>()
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
  #isClosed = false

  constructor(options: PolledListenersOptions<L>) {
    this.#options = options
  }

  /** Returns the function that ends it. */
  listen(listener: L): () => void {
    if (this.#isClosed) {
      listener.ended()
      return () => {}
    }
    this.#listeners.add(listener)
    if (this.#timer === undefined && this.#round === undefined) this.#schedule(0)
    return () => this.#listeners.delete(listener)
  }

  /** Ends all listeners, so that no answer waits for changes while the gateway shuts down. */
  drain(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const ended = [...this.#listeners]
    this.#listeners.clear()
    for (const listener of ended) listener.ended()
  }

  async close(): Promise<void> {
    this.drain()
    await this.#round
  }

  #schedule(millis: number): void {
    const { everyMillis, look, idle } = this.#options
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#round = look(this.#listeners).then(() => {
        this.#round = undefined
        if (this.#isClosed) return
        if (this.#listeners.size > 0) return this.#schedule(everyMillis)
        idle()
      })
    }, millis)
  }
}
