import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import type { RunListener } from '#sdk/workflow/run-changes.ts'
import type { RunStore } from '#storage/runs/run-store.ts'

interface RunChangesOptions {
  readonly store: Pick<RunStore, 'changes' | 'now'>
  readonly log: Logger
  readonly everyMillis?: number
}

/** A commit may become visible this much later than the time that it wrote. */
const lateMillis = 5_000
const maxChanges = 500

/**
 * Notices changes of stored runs, those of other processes included, by looking for them every second while someone
 * listens.
 */
export class RunChanges implements Closable {
  readonly #options: Required<RunChangesOptions>
  readonly #listeners = new Set<RunListener>()
  /** The time of the latest change of each run that was seen within the window. */
  #seen = new Map<string, number>()
  #since: Date | undefined
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
  #isClosed = false

  constructor({ store, log, everyMillis = 1_000 }: RunChangesOptions) {
    this.#options = { store, log, everyMillis }
  }

  /** Returns the function that ends it. */
  listen(listener: RunListener): () => void {
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
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#round = this.#look().then(() => {
        this.#round = undefined
        if (this.#isClosed) return
        if (this.#listeners.size > 0) return this.#schedule(this.#options.everyMillis)
        // The next listener starts with the present.
        this.#since = undefined
        this.#seen.clear()
      })
    }, millis)
  }

  async #look(): Promise<void> {
    const { store, log } = this.#options
    try {
      const isFirst = this.#since === undefined
      const since = this.#since ?? (await store.now())
      const found = await store.changes(new Date(since.getTime() - lateMillis), maxChanges)
      const fresh = found.filter(({ id, updated }) =>
        isFirst ? updated >= since : this.#seen.get(id) !== updated.getTime(),
      )
      this.#seen = new Map(found.map(({ id, updated }) => [id, updated.getTime()]))
      const isComplete = found.length < maxChanges
      this.#since = isComplete ? (found.at(-1)?.updated ?? since) : await store.now()
      if (fresh.length === 0 && (isComplete || isFirst)) return
      for (const listener of this.#listeners) listener.changed(fresh, isComplete)
    } catch (err) {
      log.warn('changes of requests could not be looked for', { err })
    }
  }
}
