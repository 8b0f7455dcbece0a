import type { AuditEntry } from '#domain/audit.ts'
import type { NewMail } from '#domain/mail.ts'

/** A registration that waits for its mail address to be confirmed. */
export interface PendingRegistration {
  readonly id: string
  /** The application that took it; no other may go on with it. */
  readonly form: string
  /** The hash of the secret in the mail; the secret itself is not stored. */
  readonly tokenHash: string
  /** Sealed. */
  readonly sealed: string
  readonly expires: Date
}

export type StoredInvitationState = 'open' | 'accepted' | 'revoked'

export interface Invitation {
  readonly id: string
  /** The application that it is an invitation to. */
  readonly form: string
  readonly email: string
  /** What the invitation sets. */
  readonly attributes: Readonly<Record<string, string>>
  readonly invitedBy: string
  readonly state: StoredInvitationState
  readonly created: Date
  readonly expires: Date
  /** How often its mail was sent. */
  readonly sent: number
}

export type NewInvitation = Omit<Invitation, 'state' | 'sent'> & { readonly tokenHash: string }

export interface InvitationQuery {
  readonly form: string
  /** The `next` of a page. */
  readonly after?: string
  /** At most 500 come back, whatever is asked. */
  readonly limit: number
}

export interface InvitationPage {
  /** Latest first. */
  readonly invitations: readonly Invitation[]
  readonly next?: string
}

/**
 * What registrations keep before there is a run. Times are compared with the clock of the database, but for those that
 * are given.
 */
export interface RegistrationStore {
  /**
   * Holds all of the keys for an owner, or none; those that others hold come back. A key is held for so long, and beyond
   * that while a run is under way that `holdForRun` named, or that was started with the idempotency key
   * (`reservationScope`, owner).
   */
  reserve(owner: string, keys: readonly string[], forMillis: number): Promise<readonly string[]>
  /** The owner's keys are held as long as the run is under way, and for so long from now. */
  holdForRun(owner: string, run: string, forMillis: number): Promise<void>
  /** But for keys that are held for a run. */
  release(owner: string): Promise<void>
  /** With its mails, or neither. */
  addPending(pending: PendingRegistration, mails: readonly NewMail[]): Promise<void>
  /** Undefined when there is none or its time has passed. */
  findPending(form: string, tokenHash: string): Promise<PendingRegistration | undefined>
  removePending(id: string): Promise<void>
  addInvitation(invitation: NewInvitation, mails: readonly NewMail[], audit: readonly AuditEntry[]): Promise<void>
  /** The invitation that a secret opens, in whatever state, while its time has not passed. */
  findInvitation(form: string, tokenHash: string): Promise<Invitation | undefined>
  getInvitation(form: string, id: string): Promise<Invitation | undefined>
  listInvitations(query: InvitationQuery): Promise<InvitationPage>
  /** An open invitation gets another secret, time and mail; the earlier secret is worth nothing. False when it is not open. */
  renewInvitation(
    renewal: { readonly id: string; readonly tokenHash: string; readonly expires: Date },
    mails: readonly NewMail[],
    audit: readonly AuditEntry[],
  ): Promise<boolean>
  /** Of all who try to change an invitation from one state, one succeeds. */
  moveInvitation(
    id: string,
    from: StoredInvitationState,
    to: StoredInvitationState,
    audit: readonly AuditEntry[],
  ): Promise<boolean>
  /** Forgets what has run out: reservations and pending registrations at once, invitations after 90 days; how many. */
  deleteExpired(): Promise<number>
}

/** The scope of the idempotency keys that registrations start their runs with. */
export const reservationScope = 'gatehouse registration'
