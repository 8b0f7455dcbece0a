import type { InvitationState } from '#contract/register.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { MailText } from '#sdk/mail.ts'
import type { UniqueValue } from '#sdk/new-account.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow.ts'

/** A mail with a secret in it that nobody but its recipient learns. */
export interface SecretMail {
  readonly recipient: string
  write(secret: string): MailText
}

export interface OpenRegistration {
  readonly id: string
  readonly data: JsonObject
}

export interface InvitationRecord {
  readonly id: string
  readonly email: string
  readonly attributes: Readonly<Record<string, string>>
  readonly invitedBy: string
  readonly state: InvitationState
  readonly created: Date
  readonly expires: Date
  readonly sent: number
}

/** Who changes an invitation, for the audit. */
export interface InvitationActor {
  readonly by: string
  readonly requestId?: string
}

export interface InvitationsPage {
  readonly invitations: readonly InvitationRecord[]
  readonly next?: string
}

/**
 * What the registration form of one application keeps before and while its runs are under way. Everything survives a
 * restart and is the same for all gateways that share a database.
 */
export interface RegistrationAccess {
  /**
   * Starts the run of one registration, and holds the values for it: others who want one of them are refused as long as the
   * run is under way. `check` is asked once they are held. The same id starts one run, however often it is asked for.
   */
  start(registration: RegistrationStart): Promise<RegistrationOutcome>
  /** True the first time for a token that counts once, such as the solution of a task. */
  useOnce(token: string, forMillis: number): Promise<boolean>
  /** Keeps a registration, sealed, until its mail address is confirmed. The mail goes out with it, or neither. */
  keep(form: string, id: string, data: JsonObject, mail: SecretMail, validMillis: number): Promise<void>
  /** Undefined when the secret is none of the form's, or its time has passed. */
  open(form: string, secret: string): Promise<OpenRegistration | undefined>
  forget(id: string): Promise<void>
  /** For the metrics. */
  counted(form: string, event: RegistrationEvent): void
  readonly invitations: InvitationAccess
}

/**
 * What became of something that was sent to a form: its workflow started at once, a mail went out first, a mail was
 * confirmed and the workflow started, a link of a mail was worth nothing; or it was refused for what it said, for not
 * coming from a person, for coming too often, or failed by no fault of its own. Or somebody was invited.
 */
export type RegistrationEvent =
  | 'started'
  | 'mailed'
  | 'confirmed'
  | 'unknown-link'
  | 'refused'
  | 'not-human'
  | 'limited'
  | 'failed'
  | 'invited'

export interface RegistrationStart {
  readonly id: string
  readonly unique: readonly UniqueValue[]
  readonly call: WorkflowCall
  /** Which of the unique values somebody has already. */
  check(): Promise<readonly UniqueValue[]>
  /** The invitation that is used up by it. */
  readonly invitation?: string
}

export type RegistrationOutcome =
  | { readonly kind: 'started'; readonly result: WorkflowResult }
  /** Others have these values, or are about to. */
  | { readonly kind: 'taken'; readonly values: readonly UniqueValue[] }
  /** The invitation was used or revoked meanwhile. */
  | { readonly kind: 'not-invited' }

export interface InvitationAccess {
  /** The mail goes out with it, or neither. */
  create(form: string, invitation: InvitationDraft, actor: InvitationActor): Promise<InvitationRecord>
  /** The open invitation that the secret belongs to; undefined when it was used or revoked, or its time has passed. */
  open(form: string, secret: string): Promise<InvitationRecord | undefined>
  get(form: string, id: string): Promise<InvitationRecord | undefined>
  /** Latest first. BAD_REQUEST for an `after` that no page gave. */
  list(form: string, limit: number, after?: string): Promise<InvitationsPage>
  /** Another mail with another secret; the earlier one is worth nothing. CONFLICT when it is not open, NOT_FOUND. */
  resend(form: string, id: string, mail: InvitationMail, actor: InvitationActor): Promise<InvitationRecord>
  /** CONFLICT when it is not open, NOT_FOUND. */
  revoke(form: string, id: string, actor: InvitationActor): Promise<InvitationRecord>
}

export interface InvitationMail {
  write(secret: string): MailText
  readonly validMillis: number
}

export interface InvitationDraft extends InvitationMail {
  readonly email: string
  readonly attributes: Readonly<Record<string, string>>
}
