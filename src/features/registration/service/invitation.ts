import type { InvitationState } from '#features/registration/contract/register.ts'
import type { MailText } from '#sdk/mail/mail.ts'

/** An invitation to a registration form. */
export interface Invitation {
  readonly id: string
  /** The application whose form it opens. */
  readonly form: string
  readonly email: string
  /** Attributes that the registration takes from the invitation. */
  readonly attributes: Readonly<Record<string, string>>
  readonly invitedBy: string
  readonly state: 'open' | 'accepted' | 'revoked'
  readonly created: Date
  readonly expires: Date
  /** How often its mail was sent. */
  readonly sent: number
}

/** An invitation with its state. */
export interface InvitationRecord extends Omit<Invitation, 'form' | 'state'> {
  readonly state: InvitationState
}

/** The user who changes an invitation, for the audit. */
export interface InvitationActor {
  readonly by: string
  readonly requestId?: string
}

/** A page of invitations. */
export interface InvitationsPage {
  readonly invitations: readonly InvitationRecord[]
  readonly next?: string
}

/** The mail of an invitation, and how long its link is valid. */
export interface InvitationMail {
  write(secret: string): MailText
  readonly validMillis: number
}

/** An invitation to create. */
export interface InvitationDraft extends InvitationMail, Pick<Invitation, 'email' | 'attributes'> {}
