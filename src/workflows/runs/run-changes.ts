import type { Logger } from '#kernel/logger.ts'
import { PolledListeners } from '#kernel/polled-listeners.ts'
import type { Closable } from '#kernel/scope.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import type { RunListener } from './run-listener.ts'

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
  readonly #store: RunChangesOptions['store']
  readonly #log: Logger
  readonly #listeners: PolledListeners<RunListener>
  /** The time of the latest change of each run that was seen within the window. */
  #seen = new Map<string, number>()
  #since: Date | undefined

  constructor({ store, log, everyMillis = 1_000 }: RunChangesOptions) {
    this.#store = store
    this.#log = log
    this.#listeners = new PolledListeners({
      everyMillis,
      look: (listeners) => this.#look(listeners),
      // The next listener starts with the present.
      idle: () => {
        this.#since = undefined
        this.#seen.clear()
      },
    })
  }

  /** Returns the function that ends it. */
  listen(listener: RunListener): () => void {
    return this.#listeners.listen(listener)
  }

  drain(): void {
    this.#listeners.drain()
  }

  close(): Promise<void> {
    return this.#listeners.close()
  }

  async #look(listeners: ReadonlySet<RunListener>): Promise<void> {
    try {
      const isFirst = this.#since === undefined
      const since = this.#since ?? (await this.#store.now())
      const { changes: found, isComplete } = await this.#store.changes(
        new Date(since.getTime() - lateMillis),
        maxChanges,
      )
      const fresh = found.filter(({ id, updated }) =>
        isFirst ? updated >= since : this.#seen.get(id) !== updated.getTime(),
      )
      this.#seen = new Map(found.map(({ id, updated }) => [id, updated.getTime()]))
      this.#since = isComplete ? (found.at(-1)?.updated ?? since) : await this.#store.now()
      if (fresh.length === 0 && (isComplete || isFirst)) return
      for (const listener of listeners) listener.changed(fresh, isComplete)
    } catch (err) {
      this.#log.warn('changes of requests could not be looked for', { err })
    }
  }
}
