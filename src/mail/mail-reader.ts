import type { Attributes } from '#identity/attributes.ts'
import type { MailUser } from '#sdk/mail/mail.ts'
import { type Texts, type TextsLanguage, textsIn, textsLanguage } from '#sdk/page/page-texts.ts'
import type { MailChoices } from './mail-choices.ts'
import type { NotificationSettings } from './notification.ts'

/** How texts for one reader of mails are written. */
export interface MailReader {
  readonly language: TextsLanguage
  readonly texts: Texts
  dateText(date: Date): string
}

export const mailReader = (language: TextsLanguage): MailReader => ({
  language,
  texts: textsIn(language),
  dateText: (date) =>
    `${new Intl.DateTimeFormat(language, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(date)} UTC`,
})

/** Readers whose language is unknown, and channels that several people read. */
export const anyReader = mailReader('en')

/** Its values are those of an Accept-Language header, such as `de-CH, en;q=0.5`. */
export const languageAttribute = 'preferredLanguage'

/** The language that the user chose, or that of their directory entry, or the fallback, or English. */
export const mailLanguage = (
  settings: Pick<NotificationSettings, 'language'> | undefined,
  attributes: Pick<Attributes, 'values'> | undefined,
  { attribute = languageAttribute, fallback }: { readonly attribute?: string; readonly fallback?: TextsLanguage } = {},
): TextsLanguage => textsLanguage([settings?.language ?? '', ...(attributes?.values(attribute) ?? []), fallback ?? ''])

/** Each with the reader of mails to its user; `anyReader` for those without a user. */
export async function withReaders<T>(
  items: readonly T[],
  userOf: (item: T) => MailUser | undefined,
  choices: Pick<MailChoices, 'settingsOf'> | undefined,
): Promise<readonly (readonly [item: T, reader: MailReader])[]> {
  const settings = await choices?.settingsOf(items.flatMap((item) => userOf(item)?.identity ?? []))
  return items.map((item) => {
    const { identity, attributes } = userOf(item) ?? {}
    const chosen = identity === undefined ? undefined : settings?.get(identity)
    return [item, mailReader(mailLanguage(chosen, attributes))]
  })
}

export async function readerOf(
  user: MailUser | undefined,
  choices: Pick<MailChoices, 'settingsOf'> | undefined,
): Promise<MailReader> {
  const [[, reader] = [user, anyReader]] = await withReaders([user], (one) => one, choices)
  return reader
}
