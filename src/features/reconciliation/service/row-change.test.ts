import { expect, test } from 'vitest'
import { missingAccount } from '#testing/reconciliation/difference.ts'
import { changeSince } from './row-change.ts'

const planned = missingAccount('ada', {
  kind: 'different',
  action: 'change',
  target: { id: 'x', login: 'ada' },
  groups: { add: [], remove: ['staff'] },
})

test('a change that would take the last membership by now is not the planned one', () => {
  expect(changeSince(planned, planned)).toBeUndefined()
  const present = { ...planned, removes: true, reason: 'The change takes all compared memberships.' } as const
  expect(changeSince(planned, present)).toBe('Not as in the plan: The change takes all compared memberships.')
  expect(changeSince(present, planned)).toBeUndefined()
})
