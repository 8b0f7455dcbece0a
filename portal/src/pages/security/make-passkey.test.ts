import { expect, test } from 'vitest'
import { allowsPasskeys } from './make-passkey.ts'

test('passkeys need a host name', () => {
  expect(['localhost', 'portal.example.com', '10.example.com'].map(allowsPasskeys)).toEqual([true, true, true])
  expect(['127.0.0.1', '[::1]'].map(allowsPasskeys)).toEqual([false, false])
})
