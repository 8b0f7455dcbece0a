import { expect, test } from 'vitest'
import { requesterText } from './requester.ts'

test('whoever has no login is described, and everybody else is called by it', () => {
  const t = (key: string): string => `<${key}>`
  expect(requesterText('Anonymous', t)).toBe('<people.registering>')
  expect(requesterText('anonymous', t)).toBe('<people.registering>')
  expect(requesterText('anonymous2', t)).toBe('anonymous2')
})
