import { expect, test } from 'vitest'
import { exceededLimit } from './limits.ts'

const limits = { percent: 5, accounts: 50 }

test.each([
  [1000, { deactivate: 50 }, undefined],
  [
    1000,
    { deactivate: 30, delete: 21 },
    'The plan would deactivate 30 and delete 21 of 1000 accounts in scope. The limit is 50 (limits.accounts).',
  ],
  [
    100,
    { removeMemberships: 6 },
    'The plan would take all memberships from 6 of 100 accounts in scope. The limit is 5, which are 5 % (limits.percent).',
  ],
  [100, { removeMemberships: 5 }, undefined],
  // One account of a small system is more than 5 %.
  [3, { delete: 1 }, undefined],
  [3, { delete: 2 }, 'The plan would delete 2 of 3 accounts in scope. The limit is 1, which are 5 % (limits.percent).'],
  [0, {}, undefined],
  [1000, { create: 900, change: 900, report: 900 }, undefined],
])('of %i accounts, %j', (target, actions, expected) => {
  expect(exceededLimit(limits, { target, actions, removes: 0 })).toBe(expected)
})

test('changes that take access away count with all others that do', () => {
  const counts = { target: 1000, actions: { deactivate: 30, change: 500 } }
  expect(exceededLimit(limits, { ...counts, removes: 20 })).toBeUndefined()
  expect(exceededLimit(limits, { ...counts, removes: 21 })).toBe(
    'The plan would deactivate 30 and by changes deactivate or take all memberships from 21 of 1000 accounts in scope. The limit is 50 (limits.accounts).',
  )
})

test('a limit of nothing allows nothing', () => {
  expect(exceededLimit({ percent: 100, accounts: 0 }, { target: 10, actions: { delete: 1 }, removes: 0 })).toMatch(
    /The limit is 0 \(limits.accounts\)/,
  )
  expect(exceededLimit({ percent: 0, accounts: 9 }, { target: 10, actions: { delete: 1 }, removes: 0 })).toMatch(
    /The limit is 0, which are 0 %/,
  )
})
