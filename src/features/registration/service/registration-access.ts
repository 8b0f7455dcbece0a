import type { InvitationState } from '#features/registration/contract/register.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { MailText } from '#sdk/mail/mail.ts'
import type { UniqueValue } from '#sdk/target/new-account.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow/workflow.ts'
import type { Invitation } from './invitation.ts'

/** A mail with a secret that only its recipient learns. */
export interface SecretMail {
  readonly recipient: string
  write(secret: string): MailText
}

/** A submitted registration whose link was not opened yet. */
export interface OpenRegistration {
  readonly id: string
  readonly data: JsonObject
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

/**
 * What the registration form of one application stores until its run ends. It survives restarts and is shared by all
 * gateways of a database.
 */
export interface RegistrationAccess {
  /**
   * Starts the run of one registration and reserves the values for it: others can't get them until the run ends.
   * Calls `check` once they are reserved. The same id starts only one run.
   */
  start(registration: RegistrationStart): Promise<RegistrationOutcome>
  /** True only for the first use of a token, such as the solution of a puzzle. */
  useOnce(token: string, forMillis: number): Promise<boolean>
  /** Stores an encrypted registration until its mail address is confirmed, in one transaction with the mail. */
  keep(form: string, id: string, data: JsonObject, mail: SecretMail, validMillis: number): Promise<void>
  /** Undefined if the secret does not belong to the form, or the registration has expired. */
  open(form: string, secret: string): Promise<OpenRegistration | undefined>
  forget(id: string): Promise<void>
  /** For metrics. */
  counted(form: string, event: RegistrationEvent): void
  readonly invitations: InvitationAccess
}

/**
 * The result of a call to a form: the workflow started at once, a mail was sent first, a mail was confirmed and the
 * workflow started, or the link of a mail was invalid; the call was refused for its content, for not coming from a
 * person, or for coming too often, or it failed. Or a user was invited.
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

/** A confirmed registration and the workflow to start for it. */
export interface RegistrationStart {
  readonly id: string
  readonly unique: readonly UniqueValue[]
  readonly call: WorkflowCall
  /** Returns the unique values that another user already has. */
  check(): Promise<readonly UniqueValue[]>
  /** The invitation that it accepts. */
  readonly invitation?: string | undefined
}

/** Whether the workflow of a registration started. */
export type RegistrationOutcome =
  | { readonly kind: 'started'; readonly result: WorkflowResult }
  /** Others have these values, or have reserved them. */
  | { readonly kind: 'taken'; readonly values: readonly UniqueValue[] }
  /** The invitation was used or revoked meanwhile. */
  | { readonly kind: 'not-invited' }

/** The invitations of registration forms. */
export interface InvitationAccess {
  /** Stores the invitation in one transaction with its mail. */
  create(form: string, invitation: InvitationDraft, actor: InvitationActor): Promise<InvitationRecord>
  /** The open invitation of the secret; undefined when it was accepted or revoked, or has expired. */
  open(form: string, secret: string): Promise<InvitationRecord | undefined>
  get(form: string, id: string): Promise<InvitationRecord | undefined>
  /** Latest first. Throws BAD_REQUEST for an `after` that isn't the `next` of a page. */
  list(form: string, limit: number, after?: string): Promise<InvitationsPage>
  /** Sends another mail with another secret; the earlier one becomes invalid. Throws CONFLICT when it is not open, NOT_FOUND. */
  resend(form: string, id: string, mail: InvitationMail, actor: InvitationActor): Promise<InvitationRecord>
  /** Throws CONFLICT when it is not open, NOT_FOUND. */
  revoke(form: string, id: string, actor: InvitationActor): Promise<InvitationRecord>
}

/** The mail of an invitation, and how long its link is valid. */
export interface InvitationMail {
  write(secret: string): MailText
  readonly validMillis: number
}

/** An invitation to create. */
export interface InvitationDraft extends InvitationMail, Pick<Invitation, 'email' | 'attributes'> {}

/** The fields of a form that starts a workflow about a new user, as approvers see them. */
export interface RegistrationForm {
  readonly workflow: string
  readonly fields: readonly {
    readonly name: string
    readonly label: string
    /** The choices of a list: their label and value. */
    readonly items: readonly { readonly name: string; readonly value: string }[]
  }[]
}

/** A form that users can be invited to, also from the command line. */
export interface InvitationForm {
  /** The name under which its invitations are stored. */
  name(application: string): string
  /** What is wrong with an invitation that sets these attributes. */
  problems(email: string, attributes: Readonly<Record<string, string>>): readonly string[]
  readonly mail: InvitationMail
}

/** What a filter with a form offers. */
export interface OffersForm {
  readonly form: RegistrationForm
  /** Present if users can be invited to it. */
  readonly invitations?: InvitationForm | undefined
}

export const offersForm = <F extends object>(filter: F): filter is F & OffersForm => 'form' in filter
