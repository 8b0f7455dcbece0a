import { expect, test } from 'vitest'
import { requesterText } from './requester.ts'

test('a requester without a login is described, and every other is named by it', () => {
  const t = (key: string): string => `<${key}>`
  expect(requesterText('Anonymous', t)).toBe('<people.registering>')
  expect(requesterText('anonymous', t)).toBe('<people.registering>')
  expect(requesterText('anonymous2', t)).toBe('anonymous2')
})
