import { expect, test } from 'vitest'
import { reasonText } from './reason-text.ts'

test.each([
  ['{"address":"127.0.0.1","agent":"curl/8"}', 'address: 127.0.0.1, agent: curl/8'],
  ['{"event":"key created","days":3,"to":["a"]}', 'event: key created, days: 3, to: ["a"]'],
  ['On call tonight', 'On call tonight'],
  ['{"address":"127…', '{"address":"127…'],
  ['{not json}', '{not json}'],
  ['', ''],
])('%s is shown as %s', (reason, shown) => {
  expect(reasonText(reason)).toBe(shown)
})
