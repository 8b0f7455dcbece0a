import { expect, test } from 'vitest'
import { acceptedLanguages, chooseLanguage } from './languages.ts'

test("the language is the chosen one, or the browser's first available one", () => {
  expect(chooseLanguage('fr', ['de'])).toBe('fr')
  expect(chooseLanguage('xx', ['pt-BR', 'ja-JP', 'de'])).toBe('ja')
  expect(chooseLanguage(null, ['pt'])).toBe('en')
  expect(chooseLanguage('constructor', [])).toBe('en')
})

test('Accept-Language is read by weight, and malformed parts are skipped', () => {
  expect(acceptedLanguages('en;q=0.5, de-AT, fr;q=0.9')).toEqual(['de-AT', 'fr', 'en'])
  expect(acceptedLanguages('de;q=0, *, ;;, ja;q=2, es')).toEqual(['es'])
  expect(acceptedLanguages('')).toEqual([])
  expect(acceptedLanguages('de,'.repeat(10_000))).toHaveLength(50)
})
