import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'

export interface GrantLoopOptions {
  /** Revokes due grants; returns how many. */
  revokeDue(signal: AbortSignal): Promise<number>
  readonly log: Logger
  readonly everyMillis?: number
}

/** Looks for expired access, at start and every few seconds. */
export class GrantLoop implements Closable {
  readonly #options: Required<GrantLoopOptions>
  readonly #stop = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined

  constructor({ revokeDue, log, everyMillis = 5_000 }: GrantLoopOptions) {
    this.#options = { revokeDue, log, everyMillis }
  }

  start(): void {
    if (this.#stop.signal.aborted || this.#timer !== undefined) return
    this.#timer = setTimeout(() => this.#tick(), 0)
  }

  /** Waits for a revocation that is running. */
  async close(): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#timer)
    await this.#round
  }

  #tick(): void {
    const { revokeDue, log, everyMillis } = this.#options
    this.#round = revokeDue(this.#stop.signal).then(
      () => {},
      (err: unknown) => log.warn('expired access could not be looked for', { err }),
    )
    void this.#round.then(() => {
      if (!this.#stop.signal.aborted) this.#timer = setTimeout(() => this.#tick(), everyMillis)
    })
  }
}
