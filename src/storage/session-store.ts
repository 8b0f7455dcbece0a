import type { Identity } from '#identity/identity.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { AuditRow } from '#storage/audit-store.ts'

/** A login that is remembered between requests. */
export interface Session {
  /** The hash of the secret in the cookie; the secret itself is never stored. Compared byte for byte. */
  readonly id: string
  /** What it is called where its owner sees it; the same through a step-up. */
  readonly publicId: string
  /** Which applications it belongs to: those that share its cookie. */
  readonly context: string
  /** Where it was started. */
  readonly application: string
  /** Who the session belongs to. */
  readonly owner: Identity
  /** The owner's login, for display. */
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

export type EndedSession = Pick<Session, 'publicId' | 'application' | 'userID'>

/** Sessions that end together, with what the audit says of them. */
export interface SessionEnding {
  /** The users whose sessions end. */
  readonly owners: readonly Identity[]
  /** Where no owner is named: the logins whose sessions end, in any letter case. */
  readonly logins: readonly string[]
  /** The public id of a session that stays. */
  readonly exceptPublicId?: string
  /** What was noted before the password was written, and is done with this. */
  readonly settles?: { readonly id: string; readonly lease: number }
  audit(ended: readonly EndedSession[]): readonly AuditRow[]
}

/** How many of a user's sessions are listed. */
export const maxListedSessions = 100

/** How many sessions one user has at a time. */
export const maxSessionsPerUser = 1_000

export interface SessionStore {
  /**
   * Throws CONFLICT when the id exists. The session that it replaces, by its id, ends with the same commit. So do others of
   * the owner beyond `maxSessionsPerUser`: first those that were never used again, as programs leave them, then the ones
   * that were not used for the longest.
   */
  create(session: Session, replaces?: string): Promise<void>
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
  /** Undefined when absent or expired. */
  findPublic(publicId: string, now: Date): Promise<Session | undefined>
  /** Latest first. */
  ofOwner(owner: Identity, now: Date): Promise<readonly Session[]>
  /** False when the owner has no session of that public id. */
  deletePublic(owner: Identity, publicId: string): Promise<boolean>
  /** Ends every session of the owner in all applications, but for one of that public id; how many. */
  deleteOfOwner(owner: Identity, exceptPublicId?: string): Promise<number>
  /** The session of that public id ends with `deleteMarked`. The mark is kept until the time given. */
  mark(publicId: string, mark: string, until: Date): Promise<void>
  /** Ends the sessions with the mark; how many. */
  deleteMarked(mark: string): Promise<number>
  /** Removes what has expired; how many sessions. */
  deleteExpired(now: Date): Promise<number>
}
