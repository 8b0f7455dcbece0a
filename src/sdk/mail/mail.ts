import type { Attributes } from '#identity/attributes.ts'
import type { Identity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { TextKey } from '#sdk/page/page-texts.ts'

/** The content of a mail. The HTML is made from the text, escaped, unless it is given. */
export interface MailText {
  readonly subject: string
  readonly text: string
  readonly html?: string
  /** The Notifier that sends it; absent for the default one. */
  readonly notifier?: string
}

/** A sentence that Gatehouse adds to a mail. */
export interface MailSentence {
  readonly key: TextKey
  readonly values: Readonly<Record<string, string>>
}

/** The user who gets a mail, which is in the language of their choice, or of these attributes. */
export interface MailUser {
  readonly identity?: Identity | undefined
  readonly attributes: Pick<Attributes, 'values'>
}

/**
 * A mail of a step. It is sent after the step has committed, and once for each step and recipient, even if the step
 * is retried.
 */
export interface StepMail extends MailText {
  readonly recipient: string
  /** The user who gets it, as far as known. */
  readonly reader?: MailUser | undefined
  /** Written below the text, in the language of the reader. */
  readonly sentences?: readonly MailSentence[]
  /** Notifies the requester of the outcome: not sent to a requester who chose no such mails. */
  readonly isOutcome?: boolean
}

const maxSubjectLength = 500
const maxBodyLength = 1_000_000
const maxAddressLength = 254

/** A bare address: no name, no list, nothing that could end a header or an SMTP command. */
const address = /^[^\s\p{Cc}<>()[\],;:\\"@]{1,64}@[^\s\p{Cc}<>()[\],;:\\"@]{1,253}$/u

/** Whether the text is one mail address. */
export const isMailAddress = (text: string): boolean => text.length <= maxAddressLength && address.test(text)

/** One line, so that it can't become another header. */
export const isMailSubject = (text: string): boolean => text.length <= maxSubjectLength && !/\p{Cc}/u.test(text)

/**
 * Throws BAD_REQUEST for a mail that can't be sent: an invalid address, a subject of several lines, a mail that is
 * too long.
 */
export function checkMail({ recipient, subject, text, html }: StepMail): void {
  const refuse = (detail: string) => new GatewayError('BAD_REQUEST', `a mail cannot be sent: ${detail}`)
  if (!isMailAddress(recipient)) throw refuse('the recipient is not an address')
  if (!isMailSubject(subject)) {
    throw refuse(`the subject must be one line of at most ${maxSubjectLength} characters`)
  }
  if (text.length + (html?.length ?? 0) > maxBodyLength) throw refuse(`it is longer than ${maxBodyLength} characters`)
}
