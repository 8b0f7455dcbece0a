import { expect, test } from 'vitest'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { acceptedLanguage, type ConfiguredTexts, originalText, translator } from './configured-texts.ts'

const texts: ConfiguredTexts = new Map([['de', new Map([['Project work', 'Projektarbeit']])]])

test('a text is translated into the accepted language, and stays as written without a translation', () => {
  const german = acceptedLanguage(fakeRequest({ headers: { 'accept-language': 'de-AT, en;q=0.5' } }))
  expect(translator(texts, german)('Project work')).toBe('Projektarbeit')
  expect(translator(texts, german)('Other')).toBe('Other')
  expect(translator(texts, 'fr')('Project work')).toBe('Project work')
  expect(translator(undefined, 'de')('Project work')).toBe('Project work')
})

test('a translated choice is the configured one', () => {
  expect(originalText('Projektarbeit', ['Other', 'Project work'], texts)).toBe('Project work')
  expect(originalText('Other', ['Other'], texts)).toBe('Other')
  expect(originalText('Projektarbeit', ['Other'], texts)).toBeUndefined()
  expect(originalText('Projektarbeit', ['Project work'])).toBeUndefined()
})
