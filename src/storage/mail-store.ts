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

export interface MailFigures {
  readonly queued: number
  readonly failed: number
  /** How long the mail that is due longest has been due. */
  readonly oldestMillis?: number
}

/** Mails on their way. Mails of a run are added with its commit: see RunEffects. */
export interface MailStore {
  add(mails: readonly NewMail[]): Promise<void>
  /** The earliest of those that are due and that nobody holds, for this long. Two who ask never get the same one. */
  claim(limit: number, leaseMillis: number): Promise<readonly ClaimedMail[]>
  /** The text is dropped; that it was sent is kept. False when another has taken the mail meanwhile. */
  sent(mail: MailClaim): Promise<boolean>
  /** To be tried again then, or given up. False when another has taken the mail meanwhile. */
  failed(mail: MailClaim, error: string, retry?: When): Promise<boolean>
  figures(): Promise<MailFigures>
  /** Forgets mails that were sent or given up before then; how many. */
  prune(before: Date): Promise<number>
}
