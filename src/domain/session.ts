import type { Identity } from '#identity/identity.ts'
import type { JsonObject } from '#kernel/json.ts'

/** A login that is remembered between requests. */
export interface Session {
  /** The hash of the secret in the cookie; the secret itself is never stored. Compared byte for byte. */
  readonly id: string
  /** Names the session to its owner; the same through a step-up. */
  readonly publicId: string
  /** The applications it belongs to: those that share its cookie. */
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
  /** It expires at this time, however much it is used. */
  readonly ends?: Date
}

/** Use is written at most this often, so that reading a page is not a database write. */
export const touchEverySeconds = 30

/** When a session expires if it is not used again. */
export function sessionExpiry(session: Pick<Session, 'touched' | 'idleSeconds' | 'ends'>): Date {
  const idle = session.touched.getTime() + session.idleSeconds * 1000
  return new Date(Math.min(idle, session.ends?.getTime() ?? idle))
}

export type EndedSession = Pick<Session, 'publicId' | 'application' | 'userID'>
