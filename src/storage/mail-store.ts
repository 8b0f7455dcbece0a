import type { AuditEntry } from '#domain/audit.ts'
import type { When } from '#storage/timer-store.ts'

/** A mail that is to be sent once its transaction is durable. */
export interface NewMail {
  /**
   * The part of its Message-ID that is its own, made of what caused it and its recipient. A second mail with the same id
   * is the same mail: it is not added again, sent or not.
   */
  readonly id: string
  readonly run?: string
  readonly step?: number
  readonly recipient: string
  readonly subject: string
  readonly text: string
  readonly html?: string
  /** The Notifier that sends it; the default one when absent. */
  readonly notifier?: string
}

export interface MailClaim {
  readonly id: string
  readonly fence: number
}

export interface ClaimedMail extends MailClaim, Omit<NewMail, 'id'> {
  /** This one included. */
  readonly attempt: number
}

/**
 * `queued` is to be sent, or being sent. `unknown` was being handed over when nobody was left to learn what came of it:
 * it may have arrived, so it is not sent again by itself.
 */
export type MailState = 'queued' | 'unknown' | 'failed' | 'sent'

/** A mail as an administrator may see it: without its text. */
export interface MailSummary {
  readonly id: string
  readonly state: MailState
  readonly run?: string
  readonly step?: number
  readonly recipient: string
  readonly subject: string
  readonly attempt: number
  /** What the last attempt failed with. */
  readonly error?: string
  readonly updated: Date
}

export interface MailQuery {
  readonly state: MailState
  readonly after?: string
  /** At most 500 come back, whatever is asked. */
  readonly limit: number
}

export interface MailPage {
  /** In the order of their ids. */
  readonly mails: readonly MailSummary[]
  /** Where the following page starts; absent on the last one. */
  readonly next?: string
}

export interface MailFigures {
  /** Those that are being sent included. */
  readonly queued: number
  readonly unknown: number
  readonly failed: number
  /** How long the mail that is due longest has been due. */
  readonly oldestMillis?: number
}

/** Mails on their way. Mails of a run are added with its commit: see RunEffects. */
export interface MailStore {
  add(mails: readonly NewMail[]): Promise<void>
  /** The earliest of those that are due and that nobody holds, for this long. Two who ask never get the same one. */
  claim(limit: number, leaseMillis: number): Promise<readonly ClaimedMail[]>
  /**
   * To come before the recipient's server is told the last of the mail. From then on nobody else sends it, whatever
   * happens to whoever holds it: it is `unknown` once the lease has run out. False when another has taken the mail.
   */
  handOver(mail: MailClaim): Promise<boolean>
  /** The text is dropped; that it was sent is kept. False when another has taken the mail meanwhile. */
  sent(mail: MailClaim): Promise<boolean>
  /** To be tried again then, or given up. False when another has taken the mail meanwhile. */
  failed(mail: MailClaim, error: string, retry?: When): Promise<boolean>
  /** Nobody knows whether it arrived. False when another has taken the mail meanwhile. */
  unknown(mail: MailClaim, error: string): Promise<boolean>
  /** Throws BAD_REQUEST for an `after` that no page gave. */
  list(query: MailQuery): Promise<MailPage>
  /** Undefined when there is none. */
  get(id: string): Promise<MailSummary | undefined>
  /**
   * Queues a mail anew that was given up, or of which nobody knows whether it arrived. Throws NOT_FOUND, and CONFLICT
   * when it is neither.
   */
  retry(id: string, audit: readonly AuditEntry[]): Promise<void>
  figures(): Promise<MailFigures>
  /** Forgets mails that were sent, given up or `unknown` before then; how many. */
  prune(before: Date): Promise<number>
}
