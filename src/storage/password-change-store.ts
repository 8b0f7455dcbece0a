import type { AuditEntry } from '#domain/audit.ts'
import type { NewMail } from '#domain/mail.ts'
import type { Identity } from '#identity/identity.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { SessionEnding } from '#storage/session-store.ts'

/** A password that is to be, or is being, replaced: by a reset link, or by its owner without one. */
export interface PasswordChange {
  readonly id: string
  /** The application that takes the new password; no other may. */
  readonly form: string
  /** Whose password it is. */
  readonly owner: Identity
  /** What the engine has to know of the entry. */
  readonly data: JsonObject
}

export interface ResetLink extends PasswordChange {
  /** The hash of the secret in the mail; the secret itself is not stored. */
  readonly tokenHash: string
  readonly validMillis: number
}

/** The right to write a new password and to report the outcome. Void once the lease has run out and another has it. */
export interface ChangeClaim extends PasswordChange {
  readonly lease: number
}

/** What is committed with the outcome. */
export interface ChangeOutcome {
  readonly ending?: SessionEnding
  readonly mails?: readonly NewMail[]
  readonly audit: readonly AuditEntry[]
}

/** Times are compared with the clock of the database. */
export interface PasswordChangeStore {
  /**
   * Adds a link with its mails, and invalidates earlier links of the same user. `too many`, and nothing is added, when
   * the user got `perHour` links in the last hour.
   */
  addLink(
    link: ResetLink,
    perHour: number,
    mails: readonly NewMail[],
    audit: readonly AuditEntry[],
  ): Promise<'added' | 'too many'>
  /** The link that the secret belongs to; undefined when it was used, replaced or has expired. */
  findLink(form: string, tokenHash: string): Promise<PasswordChange | undefined>
  /** Takes a link for writing; undefined when another holds it, or as for `findLink`. Of all who ask at once, one gets it. */
  claimLink(form: string, tokenHash: string, leaseMillis: number): Promise<ChangeClaim | undefined>
  /** Notes that a password is about to be written without a link. */
  begin(change: PasswordChange, leaseMillis: number): Promise<ChangeClaim>
  /**
   * The password was written: the link is used up, other links of the user are void, sessions end. Returns
   * how many sessions ended. What is given is committed even if the claim is void by now.
   */
  finish(claim: ChangeClaim, outcome: ChangeOutcome): Promise<number>
  /**
   * The password was not written, or it isn't known whether it was: the link can be used again. Where sessions end, other
   * links of the user are void. Nothing is committed when the claim is void.
   */
  release(claim: ChangeClaim, outcome: ChangeOutcome): Promise<void>
  /**
   * Changes whose process ended without a report, oldest first, at most this many. With `all` those of every other process
   * count: for one that starts, and knows that no other is running.
   */
  abandoned(limit: number, which?: 'expired' | 'all'): Promise<readonly ChangeClaim[]>
  /** When sessions last ended because the password of one of these was, or may have been, written; for 100 days. */
  changedAt(owners: readonly Identity[]): Promise<Date | undefined>
  /** Removes what has expired more than an hour ago; how many. */
  deleteExpired(): Promise<number>
}
