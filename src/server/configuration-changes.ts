import type { LoadResult } from '#config/load/load.ts'
import type { ConfigurationSource, LoadOutcome } from '#config/watch/configuration-source.ts'
import type { CreationRetries } from '#server/creation-retries.ts'
import type { Applied } from '#server/reload.ts'

interface ChangeParts {
  readonly source: Pick<ConfigurationSource, 'load' | 'watch'>
  readonly retries: Pick<CreationRetries, 'plan'>
  /** `again`: for another attempt with the same configuration, what could not be created. */
  apply(loaded: LoadResult, again?: readonly string[]): Promise<Applied>
  /** A configuration runs or is refused. */
  settled(outcome: LoadOutcome, served: LoadResult): void
  /** The source can't be read, or a configuration can't be applied. */
  unread(error: unknown): void
}

/**
 * Applies configurations one at a time, in the order in which they were read: otherwise an older one could replace a
 * newer one. Tries again to create what other systems prevented.
 */
export class ConfigurationChanges {
  readonly #parts: ChangeParts
  #applying = Promise.resolve()
  /** The watcher may have read what it reports next before a reload that is applied by now. */
  #isRereadDue = false
  #latest: LoadResult
  #applied: { readonly loaded: LoadResult; readonly notCreated: readonly string[] }
  /** What the next attempt is for. */
  #tried: LoadResult
  #isClosed = false

  /** `first` runs, apart from what could not be created. */
  constructor(first: LoadResult, notCreated: readonly string[], parts: ChangeParts) {
    this.#parts = parts
    this.#latest = first
    this.#applied = { loaded: first, notCreated }
    this.#tried = first
  }

  /** Applies what the source has now. Never rejects. */
  reload(): Promise<void> {
    return this.#inOrder(async () => {
      this.#isRereadDue = true
      await this.#apply(await this.#parts.source.load())
    })
  }

  /** Applies what the source reports, until the watcher is closed. */
  watch(): ReturnType<ConfigurationSource['watch']> {
    const { source, unread } = this.#parts
    const { loaded, notCreated } = this.#applied
    this.#retryLater(loaded, notCreated, false)
    return source.watch({
      hash: loaded.hash,
      onChange: (result) =>
        this.#inOrder(async () => {
          const latest = this.#isRereadDue ? await source.load().catch(() => result) : result
          this.#isRereadDue = false
          await this.#apply(latest)
        }),
      onError: unread,
    })
  }

  /** Waits for what is being applied. Later changes are not: what they open would keep the process alive. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#applying
  }

  async #apply(loaded: LoadResult, again?: readonly string[]): Promise<void> {
    if (again === undefined) this.#latest = loaded
    const { outcome, served, notCreated } = await this.#parts.apply(loaded, again)
    if (outcome === 'applied') this.#applied = { loaded, notCreated }
    const { loaded: running, notCreated: missing } = this.#applied
    // After a change that is refused for its errors, what the running configuration lacks is still tried.
    const isRefused = again === undefined && outcome !== 'applied' && notCreated.length === 0
    if (!isRefused) this.#retryLater(loaded, notCreated, again !== undefined)
    else if (this.#tried !== running) this.#retryLater(running, missing, false)
    if (outcome === 'unchanged') return
    this.#parts.settled(outcome, served)
    // The attempt was for the running configuration, and the latest change is still refused.
    if (loaded !== this.#latest) await this.#apply(this.#latest)
  }

  #retryLater(loaded: LoadResult, problems: readonly string[], isRepeated: boolean): void {
    this.#tried = loaded
    this.#parts.retries.plan(problems, isRepeated, () => {
      void this.#inOrder(async () => {
        if (this.#tried === loaded) await this.#apply(loaded, problems)
      })
    })
  }

  #inOrder(work: () => Promise<void>): Promise<void> {
    if (this.#isClosed) return this.#applying
    this.#applying = this.#applying.then(work).catch((error: unknown) => this.#parts.unread(error))
    return this.#applying
  }
}
