import { expect, test } from 'vitest'
import { readConnectionLimits } from '#server/commands/connection-limits.ts'

test('the defaults are the documented ones', () => {
  const documented = { total: 4000, perAddress: 1000, headerSeconds: 10, requestSeconds: 30, idleSeconds: 65 }
  expect(readConnectionLimits({})).toEqual(documented)
})

test('each option sets its limit', () => {
  const values = {
    connections: '100',
    'connections-per-address': '20',
    'header-seconds': '2',
    'request-seconds': '3',
    'idle-seconds': '4',
  }
  const limits = { total: 100, perAddress: 20, headerSeconds: 2, requestSeconds: 3, idleSeconds: 4 }
  expect(readConnectionLimits(values)).toEqual(limits)
})
