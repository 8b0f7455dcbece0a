import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { MailChoices } from './mail-choices.ts'
import { mailLanguage, mailReader, readerOf } from './mail-reader.ts'
import { NotificationStore } from './notification-store.ts'

const preferring = (...values: string[]) => Attributes.from({ preferredLanguage: values })

test('the language is the chosen one, then that of the entry, then that of the request', () => {
  expect(mailLanguage({ language: 'fr' }, preferring('de'), { fallback: 'es' })).toBe('fr')
  expect(mailLanguage(undefined, preferring('de'), { fallback: 'es' })).toBe('de')
  expect(mailLanguage(undefined, preferring(), { fallback: 'es' })).toBe('es')
  expect(mailLanguage(undefined, undefined)).toBe('en')
  expect(mailLanguage(undefined, Attributes.from({ lang: ['ja'] }), { attribute: 'lang' })).toBe('ja')
})

test.each([
  ['de-CH', 'de'],
  ['de_AT', 'de'],
  ['nl, fr;q=0.8, de;q=0.9', 'de'],
  ['Deutsch', 'en'],
  ['', 'en'],
])('the directory may say %j', (value, language) => {
  expect(mailLanguage(undefined, preferring(value))).toBe(language)
})

test('dates are written in the language of the reader', () => {
  const date = new Date('2027-03-05T14:30:00Z')
  expect(mailReader('en').dateText(date)).toMatch(/^March 5, 2027 at 2:30\sPM UTC$/)
  expect(mailReader('de').dateText(date)).toBe('5. März 2027 um 14:30 UTC')
})

test('a choice in the portal is found by the identity', async () => {
  const store = new NotificationStore(memoryDatabase())
  const { identity } = userRef('ada')
  await store.save(identity, { choices: {}, language: 'ja' })
  const choices = new MailChoices(store, { jobs: new Map() })
  expect((await readerOf({ identity, attributes: preferring('de') }, choices)).language).toBe('ja')
  expect((await readerOf({ attributes: preferring('de') }, choices)).language).toBe('de')
  expect((await readerOf(undefined, choices)).language).toBe('en')
})
