import { expect, test } from 'vitest'
import { missingAccount } from '#testing/reconciliation/difference.ts'
import { callOf, changeSince } from './row-change.ts'

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

const plan = { id: '1', reconciliation: 'chat' }
const change = { plan, workflow: 'work', target: 'chat', copiesLogin: true }

test('a run may not create the account that it changes', () => {
  expect(callOf({ ...change, difference: planned }).basedOn).toEqual({ target: 'chat', version: '*', userID: 'ada' })
  expect(callOf({ ...change, difference: { ...planned, targetVersion: '7' } }).basedOn).toMatchObject({ version: '7' })
  expect(callOf({ ...change, difference: missingAccount('ada') }).basedOn).toEqual({ target: 'chat', version: '' })
})

test('no run goes to an account whose login it cannot name', () => {
  const { source: _, ...extra } = planned
  const difference = { ...extra, kind: 'extra', action: 'deactivate' } as const
  expect(callOf({ ...change, difference }).user).toMatchObject({ userID: 'ada', id: 'x' })
  expect(() => callOf({ ...change, copiesLogin: false, difference })).toThrow(
    'The targetAttributes of the target make the login, so no workflow can name the account of no person.',
  )
})
