import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import type { When } from '#kernel/time.ts'
import type { ClaimedTimer } from './timer.ts'
import type { TimerStore } from './timer-store.ts'

/**
 * The result of a due timer: `ended` if the handler's own transaction has removed it, `done` if it can be removed,
 * or when it is due again.
 */
export type TimerOutcome = 'ended' | 'done' | { readonly again: When }

/**
 * Handles a due timer, in one process at a time. It may be called again for the same timer, after a crash or a
 * throw, so its commits name the timer's claim. Errors are logged, and the timer is due again a little later.
 */
export type TimerHandler = (timer: ClaimedTimer) => Promise<TimerOutcome>

export type TimerQueue = Pick<TimerStore, 'claim' | 'done' | 'release'>

interface TimerLoopOptions {
  readonly store: TimerQueue
  readonly log: Logger
  /** How often to look for due timers. */
  readonly everyMillis?: number
  /** How long a handler may take before another process claims the timer. */
  readonly leaseMillis?: number
}

const batch = 50
const againMillis = 5_000
const unknownKindMillis = 60_000

/** Finds due timers and passes each to the handler of its kind. Kinds are registered before it starts. */
export class TimerLoop implements Closable {
  readonly #options: Required<TimerLoopOptions>
  readonly #handlers = new Map<string, TimerHandler>()
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
  #stopped = false

  constructor({ store, log, everyMillis = 1_000, leaseMillis = 60_000 }: TimerLoopOptions) {
    this.#options = { store, log, everyMillis, leaseMillis }
  }

  on(kind: string, handler: TimerHandler): void {
    if (this.#handlers.has(kind)) throw new Error(`timers of kind ${kind} have a handler already`)
    this.#handlers.set(kind, handler)
  }

  start(): void {
    if (this.#stopped || this.#timer !== undefined) return
    this.#timer = setTimeout(() => this.#tick(), 0)
  }

  /** Waits for running handlers. */
  async close(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#round
  }

  /** Handles everything that is due; returns how many. */
  async sweep(): Promise<number> {
    let handled = 0
    while (!this.#stopped) {
      const timers = await this.#options.store.claim(batch, this.#options.leaseMillis)
      await Promise.all(timers.map((timer) => this.#handle(timer)))
      handled += timers.length
      if (timers.length < batch) break
    }
    return handled
  }

  #tick(): void {
    this.#round = this.sweep().then(
      () => {},
      (err: unknown) => this.#options.log.warn('timers could not be looked for', { err }),
    )
    void this.#round.then(() => {
      if (!this.#stopped) this.#timer = setTimeout(() => this.#tick(), this.#options.everyMillis)
    })
  }

  async #handle(timer: ClaimedTimer): Promise<void> {
    const { store, log } = this.#options
    const { id, kind, run, approval } = timer
    const handler = this.#handlers.get(kind)
    try {
      if (handler === undefined) log.warn('a timer of an unknown kind is due', { timer: id, kind })
      const outcome = handler === undefined ? { again: { inMillis: unknownKindMillis } } : await handler(timer)
      if (outcome === 'done') await store.done(timer)
      else if (outcome !== 'ended') await store.release(timer, outcome.again)
    } catch (err) {
      log.warn('a timer could not be acted on', { timer: id, kind, run, approval, err })
      await store
        .release(timer, { inMillis: againMillis * (1 + Math.random()) })
        .catch((error: unknown) => log.debug('a timer could not be given back', { timer: id, err: error }))
    }
  }
}
