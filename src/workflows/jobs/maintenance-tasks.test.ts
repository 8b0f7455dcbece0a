import { expect, test } from 'vitest'
import type { ReminderRequest } from '#workflows/approvals/reassign-approvers.ts'
import { createMaintenanceTasks } from './maintenance-tasks.ts'

const now = Date.UTC(2025, 0, 31)
const going = new AbortController().signal

function maintenance(pruned: string[] = []) {
  const store = (name: string) => ({
    prune: async (before: Date) => pruned.push(`${name} ${before.toISOString().slice(0, 10)}`),
  })
  const reminders: ReminderRequest[] = []
  const made = createMaintenanceTasks({
    clock: () => new Date(now),
    stores: {
      runs: { ...store('runs'), pruneDefinitions: async () => 7 },
      mails: store('mails'),
      idempotency: store('keys'),
      jobRuns: store('jobs'),
      audit: {
        prune: async (before, { part }) => ({ removed: await store(`${part}`).prune(before), waiting: [] }),
        keptSince: async (part, most) => (part === 'tokens' ? new Date(now - most * 1000) : undefined),
      },
      sessions: { deleteExpired: async () => 4 },
    },
    mailOutcomes: async () => 0,
    mailDigests: async () => 0,
    approvals: {
      remind: async (reminder) => {
        reminders.push(reminder)
        return 2
      },
    },
    revokeDue: async () => 3,
  })
  return { made, pruned, reminders }
}

test('only data with a retention is deleted', async () => {
  const { made, pruned } = maintenance()
  expect(await made.cleanUp({ runs: 30, mails: 1 }, going)).toEqual({ runs: 1, definitions: 7, mails: 2, sessions: 4 })
  expect(pruned).toEqual(['runs 2025-01-01', 'mails 2025-01-30'])
  await made.cleanUp({ idempotencyKeys: 1, jobRuns: 2, audit: { days: 3 } }, going)
  expect(pruned.slice(2)).toEqual(['keys 2025-01-30', 'jobs 2025-01-29', 'others 2025-01-28'])
})

test('the audit is limited by age and by number, and tokens have their own limits', async () => {
  const { made, pruned } = maintenance()
  const twoDays = 2 * 24 * 3600
  await made.cleanUp({ audit: { records: 5 }, tokens: { records: twoDays } }, going)
  expect(pruned.splice(0)).toEqual(['tokens 2025-01-29'])
  await made.cleanUp({ audit: { days: 9, records: 5 }, tokens: { days: 5, records: twoDays } }, going)
  expect(pruned.splice(0)).toEqual(['others 2025-01-22', 'tokens 2025-01-29'])
  expect(await made.cleanUp({ tokens: { days: 1, records: twoDays } }, going)).toEqual({ auditTokens: 1, sessions: 4 })
  expect(pruned).toEqual(['tokens 2025-01-30'])
})

test('cleaning up ends on request', async () => {
  const { made, pruned } = maintenance()
  await expect(made.cleanUp({ runs: 30 }, AbortSignal.abort(new Error('time')))).rejects.toThrow('time')
  expect(pruned).toEqual([])
})

test('approvals get the days as a time', async () => {
  const { made, reminders } = maintenance()
  const reminder = { days: 2, key: 'k', message: 'm', mailAttribute: undefined, limit: 10 }
  expect(await made.remindApprovers(reminder)).toBe(2)
  expect(reminders).toEqual([{ openForMillis: 2 * 24 * 3600_000, key: 'k', message: 'm', limit: 10 }])
  expect(await made.revokeExpired(going)).toBe(3)
})
