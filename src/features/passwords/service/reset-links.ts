import type { Dn } from '#identity/dn.ts'
import type { MailText } from '#sdk/mail/mail.ts'
import type { Language } from '#sdk/page/languages.ts'
import type { PasswordWriter } from './password-writer.ts'

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

/** What a filter that mails links to set a password offers. */
export interface OffersResetLinks {
  readonly resetLinks: ResetLinks
}

export const offersResetLinks = <F extends object>(filter: F): filter is F & OffersResetLinks => 'resetLinks' in filter
