import type { InvitationMail } from './invitation.ts'

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
