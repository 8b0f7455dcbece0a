/** A mail that is sent once its transaction is durable. */
export interface NewMail {
  /**
   * The unique part of its Message-ID, made of the cause and the recipient. A second mail with the same id is the same
   * mail: it is not added again, sent or not.
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

/** The right to send a mail. Void once the lease has expired and another worker has claimed the mail. */
export interface MailClaim {
  readonly id: string
  readonly fence: number
}

export interface ClaimedMail extends MailClaim, Omit<NewMail, 'id'> {
  /** This one included. */
  readonly attempt: number
}

/**
 * `queued` is to be sent, or being sent. The worker of an `unknown` mail died during the hand-over: the mail may have
 * arrived, so it is not sent again automatically.
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
  /** The error of the last attempt. */
  readonly error?: string
  readonly updated: Date
}
