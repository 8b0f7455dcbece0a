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
