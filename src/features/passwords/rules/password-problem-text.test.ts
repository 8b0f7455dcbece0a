import { expect, test } from 'vitest'
import { textsIn } from '#sdk/page/page-texts.ts'
import { passwordProblemText } from './password-problem-text.ts'

test('the problem of a password is in the language of its reader, with its number', () => {
  const short = { kind: 'short', characters: 12 } as const
  expect(passwordProblemText(short, textsIn('en'))).toBe('Password must have at least 12 characters')
  expect(passwordProblemText(short, textsIn('de'))).toBe('Das Passwort muss mindestens 12 Zeichen haben')
  expect(passwordProblemText({ kind: 'breached' }, textsIn('fr'))).toContain('connu des attaquants')
})
