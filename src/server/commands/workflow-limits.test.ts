import { expect, test } from 'vitest'
import { readWorkflowLimits } from '#server/commands/workflow-limits.ts'

test('what is not said is as documented', () => {
  expect(readWorkflowLimits({})).toEqual({ attempts: 8, leaseMillis: 30_000, stepMillis: 300_000, atOnce: 16 })
})

test('what is said holds, in milliseconds', () => {
  const values = {
    'workflow-attempts': '3',
    'workflow-lease-seconds': '60',
    'workflow-step-seconds': '10',
    'workflow-parallel': '1',
  }
  expect(readWorkflowLimits(values)).toEqual({ attempts: 3, leaseMillis: 60_000, stepMillis: 10_000, atOnce: 1 })
})
