import type { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Subject } from '#identity/subject.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'
import type { MailText } from '#sdk/mail/mail.ts'
import type { Language } from '#sdk/page/languages.ts'
import type { PageReader } from '#sdk/page/page-texts.ts'

/** How new passwords reach the system that checks them. */
export interface PasswordWriter {
  /** The target that they are written to; undefined: the entry's directory insert. */
  readonly target: string | undefined
  /** The attribute with a user's login, at the target as well. */
  readonly loginAttribute: string
  readonly mailAttribute: string
  /** The mail that confirms a change to its user; undefined: no one is notified. */
  confirmation(language: Language): MailText | undefined
  /** Throws WEAK_PASSWORD, with a text for its reader. `values` are known values of the user. */
  check(password: string, values: Iterable<string>, reader: PageReader): Promise<void>
}

/** How links to set a password are mailed. */
export interface ResetLinks {
  /** Where users are searched; undefined: the root of the directory. */
  readonly root: Dn | undefined
  readonly writer: Pick<PasswordWriter, 'target' | 'loginAttribute' | 'mailAttribute'>
  readonly validMillis: number
  /** Maximum number of links for one user per hour. */
  readonly perHour: number
  /** The mail with the link, the only place of the secret. */
  write(secret: string, language: Language): MailText
}

/** The links of a filter of the configuration. */
export interface ServedResetLinks {
  /** The application of the filter, under whose name links are stored. */
  readonly application: string
  readonly links: ResetLinks
}

/** A request for a mail with a link to reset a password. */
export interface ResetRequest extends ResetLinks {
  /** Where the new password is written. */
  readonly form: string
  /** Finds the user by the typed text. */
  readonly filter: Filter
  readonly request: Pick<GatewayRequest, 'id' | 'remoteAddress' | 'headers'>
  /** The run that mails the link, for the audit; absent if anyone requested it. */
  readonly cause?: { readonly requestor: string; readonly workflow: { readonly id: string; readonly name: string } }
}

/** `unknown`: not exactly one active user with a mail address and a password here was found. */
export type ResetOutcome = 'sent' | 'unknown' | 'too many'

/** A new password, with the secret of the mailed link. */
export interface PasswordReset {
  readonly form: string
  readonly secret: string
  readonly password: string
  readonly writer: PasswordWriter
  readonly request: Pick<GatewayRequest, 'id' | 'remoteAddress' | 'headers'>
}

/** A new password of a user who is logged in. */
export interface OwnPasswordChange {
  readonly subject: Subject
  /** The public id of the session that stays. */
  readonly session: string | undefined
  readonly application: string
  readonly current: string
  readonly password: string
  readonly writer: PasswordWriter
  readonly request: GatewayRequest
}

/** Passwords that users set themselves. Every change ends sessions, and is audited, with the commit that reports it. */
export interface PasswordAccess {
  /**
   * Sends a link if exactly one active user with a mail address is found. An anonymous caller must not learn the
   * outcome. Throws only if the directory or the database doesn't answer.
   */
  requestReset(request: ResetRequest): Promise<ResetOutcome>
  /** Whether the secret's link can be used now. */
  hasLink(form: string, secret: string): Promise<boolean>
  /**
   * Sets the password and uses up the link; all sessions of the user end. `no link`: the link was used or replaced,
   * has expired, or its user is gone or deactivated. `in use`: the link is being used right now. Throws
   * WEAK_PASSWORD, and errors of the target; the link can then be used again.
   */
  reset(reset: PasswordReset): Promise<'changed' | 'no link' | 'in use'>
  /** Whether the subject has a password here that `change` can change. */
  canChange(subject: Subject, writer: PasswordWriter): boolean
  /**
   * Sets the subject's own password; ends the other sessions of the user, and returns their number. Throws
   * WRONG_PASSWORD, WEAK_PASSWORD, TOO_MANY_REQUESTS after failed attempts, and NOT_SUPPORTED if `canChange` is
   * false.
   */
  change(change: OwnPasswordChange): Promise<number>
}

/** What a filter that mails links to set a password offers. */
export interface OffersResetLinks {
  readonly resetLinks: ResetLinks
}

export const offersResetLinks = <F extends object>(filter: F): filter is F & OffersResetLinks => 'resetLinks' in filter
