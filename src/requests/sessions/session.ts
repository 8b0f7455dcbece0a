import type { Identity } from '#identity/identity.ts'
import type { JsonObject } from '#kernel/json.ts'

/** A login that is remembered between requests. */
export interface Session {
  /** The hash of the secret in the cookie, compared byte for byte. The secret itself is never stored. */
  readonly id: string
  /** Identifies the session to its owner; a step-up keeps it. */
  readonly publicId: string
  /** The applications that share its cookie. */
  readonly context: string
  /** The application where it was started. */
  readonly application: string
  readonly owner: Identity
  /** The owner's login, for display. */
  readonly userID: string
  readonly data: JsonObject
  readonly created: Date
  /** When it was last used, to within `touchEverySeconds`. */
  readonly touched: Date
  /** It expires after this time without use. */
  readonly idleSeconds: number
  /** It expires at this time, even if it is in use. */
  readonly ends?: Date
}

/** The minimum time between two writes of the last use, so that not every request writes to the database. */
export const touchEverySeconds = 30

/** When a session expires if it is not used again. */
export function sessionExpiry(session: Pick<Session, 'touched' | 'idleSeconds' | 'ends'>): Date {
  const idle = session.touched.getTime() + session.idleSeconds * 1000
  return new Date(Math.min(idle, session.ends?.getTime() ?? idle))
}

export type EndedSession = Pick<Session, 'publicId' | 'application' | 'userID'>
