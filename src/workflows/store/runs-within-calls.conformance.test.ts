import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import {
  auditRow,
  claimOne,
  commitOf,
  minute,
  newRun,
  noLease,
  shown,
  stepRecord,
  workflowStores,
} from '#testing/databases/workflow-stores.ts'
import { runHead } from '#testing/workflows/run-head.ts'
import type { Run } from '#workflows/record/run.ts'

const ids = (runs: readonly Run[]): string[] => runs.map(({ head }) => head.id)

onEachDatabase('runs within calls', (freshUrl) => {
  const open = async () => workflowStores(await freshUrl())

  test('a run that ended within its call is stored as ended, with its steps, and wakes no worker', async () => {
    const { one, two, woken } = await open()
    const incident = { task: 't', code: 'CONFLICT', message: 'taken' }
    const effects = { steps: [stepRecord(1)], audit: [auditRow('x')] }
    await one.runs.start(newRun('a', { state: { state: 'completed' }, touched: true }), { effects })
    await one.runs.start(newRun('b', { state: { state: 'failed', incident } }))
    expect(woken).toEqual([])
    expect(await shown(two.runs, 'a')).toMatchObject({ state: 'completed', touched: true, ended: expect.any(Date) })
    expect(await shown(two.runs, 'b')).toMatchObject({ state: 'failed', incident })
    expect(await two.runs.steps('a')).toHaveLength(1)
    expect(await two.runs.claim('w', 10, minute)).toEqual([])
    expect(await two.runs.prune(new Date(Date.now() + minute))).toBe(2)
  })

  test('a run within its call is claimed by it, committed under that claim, and deleted', async () => {
    const { one, two } = await open()
    await one.runs.start(newRun('a', { state: { state: 'running', leaseMillis: minute } }))
    expect(await shown(two.runs, 'a')).toMatchObject({ state: 'running', fence: 1, attempt: 1 })
    expect(await two.runs.claim('w', 10, minute)).toEqual([])
    const claim = { id: 'a', fence: 1 }
    expect(await one.runs.renew(claim, minute)).toBe(true)
    await one.runs.commit(
      commitOf(
        { head: runHead({ id: 'a' }), fence: 1 },
        { state: 'running', leaseMillis: minute },
        { audit: [auditRow('x')] },
      ),
    )
    const stale = one.runs.record({ forgets: { id: 'a', fence: 2 }, audit: [auditRow('y')] })
    await expect(stale).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    await one.runs.record({ forgets: claim, audit: [auditRow('z')] })
    expect(await two.runs.get('a')).toBeUndefined()
    expect((await two.audit.list({ limit: 10 })).rows.map(({ id }) => id).sort()).toEqual(['x', 'z'])
  })

  test('runs within calls delay no others; a lost one is claimed when its subject is free', async () => {
    const { one, two } = await open()
    const subject = 'bob'
    const within = { state: { state: 'running', leaseMillis: noLease } } as const
    await one.runs.start(
      newRun('call 1', { head: { subject }, ...within, state: { state: 'running', leaseMillis: minute } }),
    )
    await one.runs.start(newRun('stored', { head: { subject } }))
    const stored = await claimOne(two.runs)
    expect(stored.head.id).toBe('stored')
    await one.runs.start(newRun('call 2', { head: { subject }, ...within }))
    await one.runs.start(newRun('call 3', { head: { subject }, ...within }))
    await one.runs.start(newRun('free', { head: { subject: 'eve' }, ...within }))
    expect(ids(await two.runs.claim('w', 10, minute))).toEqual(['free'])
    await two.runs.commit(commitOf(stored, { state: 'completed' }))
    const first = await claimOne(two.runs)
    expect(first).toMatchObject({ fence: 2, attempt: 2 })
    expect(await two.runs.claim('w', 10, minute)).toEqual([])
    await two.runs.commit(commitOf(first, { state: 'completed' }))
    expect([first.head.id, (await claimOne(two.runs)).head.id].sort()).toEqual(['call 2', 'call 3'])
  })
})
