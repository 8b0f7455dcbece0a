import type { Runtime } from '#engine/runtime.ts'
import type { Logger } from '#kernel/logger.ts'

interface Held {
  readonly runtime: Runtime
  users: number
  retired: boolean
}

/**
 * The running configuration. A new one takes over between two requests; requests that began on the old one end on it,
 * and it is closed after the last of them.
 */
export class RunningConfiguration {
  #held: Held
  readonly #log: Logger
  readonly #closing = new Set<Promise<void>>()

  constructor(first: Runtime, log: Logger) {
    this.#held = { runtime: first, users: 0, retired: false }
    this.#log = log
  }

  get current(): Runtime {
    return this.#held.runtime
  }

  /** Runs `work` on the configuration of this moment, which stays open until it ends. */
  async use<T>(work: (runtime: Runtime) => Promise<T>): Promise<T> {
    const held = this.#held
    held.users++
    try {
      return await work(held.runtime)
    } finally {
      held.users--
      if (held.retired && held.users === 0) this.#close(held)
    }
  }

  swap(next: Runtime): void {
    const old = this.#held
    this.#held = { runtime: next, users: 0, retired: false }
    old.retired = true
    if (old.users === 0) this.#close(old)
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#closing)
    await this.#held.runtime.close()
  }

  #close(held: Held): void {
    const closing = held.runtime
      .close()
      .catch((err: unknown) => this.#log.error('old configuration could not be closed', { err }))
      .finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }
}
