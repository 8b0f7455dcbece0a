/** An address that a message offers to open. */
export interface MailLink {
  readonly label: string
  readonly url: string
  /** Whether it leads to a yes or a no, for messages that show links as buttons. */
  readonly style?: 'primary' | 'danger'
}

/** A mail. It is sent after its transaction has committed. */
export interface NewMail {
  /**
   * The unique part of its Message-ID, derived from the cause and the recipient. Adding a second mail with the same
   * id has no effect, even after the first was sent.
   */
  readonly id: string
  readonly run?: string
  readonly step?: number
  /** A mail address, or `#` and a name for a message to a channel. */
  readonly recipient: string
  readonly subject: string
  readonly text: string
  readonly html?: string | undefined
  /** Links of a message to a channel. A mail has its links in its text. */
  readonly links?: readonly MailLink[]
  /** The Notifier that sends it; absent for the default one. */
  readonly notifier?: string | undefined
}

/** A message to a channel is one with `links`, if only an empty list. */
export const mailKinds = ['mail', 'channel message'] as const
export type MailKind = (typeof mailKinds)[number]

/** The right to send a mail. Void once the lease has expired and another worker has claimed the mail. */
export interface MailClaim {
  readonly id: string
  readonly fence: number
}

export interface ClaimedMail extends MailClaim, Omit<NewMail, 'id'> {
  /** Includes this one. */
  readonly attempt: number
}

/**
 * A `queued` mail waits or is being sent. The worker of an `unknown` mail died during the hand-over: the mail may
 * have arrived, so it is not sent again automatically.
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
