import { expect, test } from 'vitest'
import { pastedLogins } from './pasted-logins.ts'

test('a list has commas, semicolons, tabs or line breaks, and each login once', () => {
  expect(pastedLogins('ada, joan;mary\r\n\tgrace\n\nada')).toEqual(['ada', 'joan', 'mary', 'grace'])
})

test.each(['', 'ada', ' Ada Lovelace ', 'ada,', '\n'])('%j is not a list', (text) => {
  expect(pastedLogins(text)).toBeUndefined()
})
