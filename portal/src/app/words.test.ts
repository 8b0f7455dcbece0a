import { expect, test } from 'vitest'
import apiTexts from '../i18n/apis/en.json' with { type: 'json' }
import consoleTexts from '../i18n/console/en.json' with { type: 'json' }
import texts from '../i18n/en.json' with { type: 'json' }
import settingsTexts from '../i18n/settings/en.json' with { type: 'json' }
import { localeOf } from './language.ts'
import { counted, fill } from './messages.ts'
import { shownPages } from './pages.ts'
import { relativeTime } from './relative-time.ts'

const en = { ...texts, ...consoleTexts, ...apiTexts, ...settingsTexts }

test('dates follow the region', () => {
  expect(localeOf('en', ['de-AT', 'en-GB'])).toBe('en-GB')
  expect(localeOf('ja', ['de-AT'])).toBe('ja')
})

test('values are inserted; a placeholder without one stays visible', () => {
  expect(fill('{a} and {b}', { a: 1 })).toBe('1 and {b}')
  expect(fill('{constructor}', {})).toBe('{constructor}')
  expect(fill('{a}', { a: '{b}', b: 'x' })).toBe('{b}')
})

test('numbers follow the language', () => {
  expect(counted(en, new Intl.PluralRules('en'), 'approvals.approved', 1)).toContain('request ')
  expect(counted(en, new Intl.PluralRules('en'), 'approvals.approved', 2)).toContain('requests')
  expect(counted(en, new Intl.PluralRules('ja'), 'approvals.approved', 1)).toContain('requests')
})

test('relative times use the largest unit that fits', () => {
  const format = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
  const hour = 3_600_000
  expect(relativeTime(format, 3 * hour + 5, 0)).toBe('in 3 hours')
  expect(relativeTime(format, 8 * hour - 1000, 0)).toBe('in 8 hours')
  expect(relativeTime(format, 0, 24 * hour)).toBe('yesterday')
  expect(relativeTime(format, 20_000, 0)).toBe('this minute')
})

test('pages can be hidden, and approvals can be off', () => {
  const ids = (hidePages: readonly string[], enableApprovals: boolean): string[] =>
    shownPages({ hidePages, enableApprovals, administrator: false }, { main: '/main' }).map(({ id }) => id)
  expect(ids([], true)).toEqual(expect.arrayContaining(['front-page', 'request-access', 'approvals']))
  expect(ids(['request-access'], false)).not.toEqual(expect.arrayContaining(['approvals']))
  expect(ids(['request-access'], false)).not.toContain('request-access')
})
