import type { JsonObject } from '#kernel/json.ts'

/** A login that is remembered between requests. */
export interface Session {
  /** The hash of the secret in the cookie; the secret itself is never stored. Compared byte for byte. */
  readonly id: string
  readonly application: string
  /** The login of whoever the session belongs to. */
  readonly userID: string
  /** What the session's owner keeps in it; plain JSON. */
  readonly data: JsonObject
  readonly created: Date
  /** When it was last used, to within `touchEverySeconds`. */
  readonly touched: Date
  /** Unused for this long, it has expired. */
  readonly idleSeconds: number
  /** However much it is used, it has expired then. */
  readonly ends?: Date
}

/** Use is written down at most this often, so that reading a page is not a database write. */
export const touchEverySeconds = 30

/** When a session expires if it is not used again. */
export function sessionExpiry(session: Pick<Session, 'touched' | 'idleSeconds' | 'ends'>): Date {
  const idle = session.touched.getTime() + session.idleSeconds * 1000
  return new Date(Math.min(idle, session.ends?.getTime() ?? idle))
}

export interface SessionStore {
  /** Throws CONFLICT when the id exists. */
  create(session: Session): Promise<void>
  /** Undefined when absent or expired; an expired session is never returned, collected or not. */
  find(id: string, now: Date): Promise<Session | undefined>
  /**
   * Notes that a session just found is in use, which postpones its expiry; writes nothing when that was noted less
   * than `touchEverySeconds` (or a tenth of the idle time) ago. Never brings back a deleted or expired session.
   */
  touch(session: Session, now: Date): Promise<void>
  /**
   * Replaces the session's data and idle time by what `change` makes of the stored one, atomically against other updates.
   * `change` may run more than once, so it must be pure. Undefined when absent or expired.
   */
  update(
    id: string,
    now: Date,
    change: (session: Session) => Pick<Session, 'data' | 'idleSeconds'>,
  ): Promise<Session | undefined>
  /** False when there was none. */
  delete(id: string): Promise<boolean>
  /** Ends every session of a login, whatever the letter case it was written in, in all applications; how many. */
  deleteOfUser(userID: string): Promise<number>
  /** Removes what has expired; how many. */
  deleteExpired(now: Date): Promise<number>
}
