import type { Identity } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import { PolledListeners } from '#kernel/polled-listeners.ts'
import type { Closable } from '#kernel/scope.ts'
import type { SessionListener } from './session-listener.ts'
import type { SessionStore } from './session-store.ts'

interface SessionChangesOptions {
  readonly store: Pick<SessionStore, 'fingerprints'>
  readonly clock: Clock
  readonly log: Logger
  readonly everyMillis?: number
}

interface Watch extends SessionListener {
  readonly user: Identity
  /** The user's sessions at the last look; undefined before the first. */
  seen: string | undefined
}

/**
 * Notices that sessions of a user began or ended, also in other processes, by looking at the sessions of the users
 * that someone watches, every second.
 */
export class SessionChanges implements Closable {
  readonly #options: SessionChangesOptions
  readonly #watches: PolledListeners<Watch>

  constructor(options: SessionChangesOptions) {
    this.#options = options
    this.#watches = new PolledListeners({
      everyMillis: options.everyMillis ?? 1_000,
      look: (watches) => this.#look(watches),
      idle: () => {},
    })
  }

  /** Returns the function that ends it. */
  listen(user: Identity, { changed, ended }: SessionListener): () => void {
    return this.#watches.listen({ user, changed, ended, seen: undefined })
  }

  drain(): void {
    this.#watches.drain()
  }

  close(): Promise<void> {
    return this.#watches.close()
  }

  async #look(watches: ReadonlySet<Watch>): Promise<void> {
    const { store, clock, log } = this.#options
    try {
      const watched = [...watches]
      const found = await store.fingerprints([...new Set(watched.map(({ user }) => user))], clock())
      for (const watch of watched) {
        const now = found.get(watch.user) ?? ''
        if (watch.seen === now || !watches.has(watch)) continue
        watch.seen = now
        watch.changed()
      }
    } catch (err) {
      log.warn('changes of sessions could not be looked for', { err })
    }
  }
}
