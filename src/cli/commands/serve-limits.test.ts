import { expect, test } from 'vitest'
import { readLimits } from '#cli/serve/plan.ts'

test('the defaults are the documented ones', () => {
  expect(readLimits({})).toEqual({
    connectionLimits: { total: 4000, perAddress: 1000, headerSeconds: 10, requestSeconds: 30, idleSeconds: 65 },
    workflowLimits: { attempts: 8, leaseMillis: 30_000, stepMillis: 300_000, atOnce: 16 },
    renewalTimes: { everyMillis: 60_000, graceMillis: 900_000 },
  })
})

test('each option sets its limit', () => {
  const values = {
    connections: '100',
    'connections-per-address': '20',
    'header-seconds': '2',
    'request-seconds': '3',
    'idle-seconds': '4',
    'workflow-attempts': '3',
    'workflow-lease-seconds': '60',
    'workflow-step-seconds': '10',
    'workflow-parallel': '1',
    'person-check-seconds': '5',
    'person-grace-seconds': '43200',
  }
  expect(readLimits(values)).toEqual({
    connectionLimits: { total: 100, perAddress: 20, headerSeconds: 2, requestSeconds: 3, idleSeconds: 4 },
    workflowLimits: { attempts: 3, leaseMillis: 60_000, stepMillis: 10_000, atOnce: 1 },
    renewalTimes: { everyMillis: 5_000, graceMillis: 43_200_000 },
  })
})

test.each([
  ['person-check-seconds', '0', 3600],
  ['person-check-seconds', '3601', 3600],
  ['person-check-seconds', '1e2', 3600],
  ['person-grace-seconds', '-1', 43_200],
  ['person-grace-seconds', '43201', 43_200],
  ['person-grace-seconds', '', 43_200],
] as const)('--%s %s is rejected', (name, value, max) => {
  expect(() => readLimits({ [name]: value })).toThrow(`--${name} must be a whole number from 1 to ${max}`)
})
