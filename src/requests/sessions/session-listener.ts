import type { Identity } from '#identity/identity.ts'

export interface SessionListener {
  /** A session of the user began or ended. Also called once at the start, since one may have done so before. */
  changed(): void
  /** The gateway shuts down, and nothing follows. */
  ended(): void
}

/** Announces that sessions of the user began or ended, about a second later. Returns the function that ends it. */
export type ListenToSessions = (user: Identity, listener: SessionListener) => () => void
