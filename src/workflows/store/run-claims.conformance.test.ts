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
import type { Run } from '#workflows/record/run.ts'
import { claimOf } from '#workflows/record/run.ts'

const ids = (runs: readonly Run[]): string[] => runs.map(({ head }) => head.id)

onEachDatabase('claims of runs', (freshUrl) => {
  const open = async () => workflowStores(await freshUrl())

  test('concurrent claims never return the same run', async () => {
    const { one, two } = await open()
    for (let i = 0; i < 40; i++) await one.runs.start(newRun(`${i}`))
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? one : two).runs.claim(`w${i}`, 4, minute)),
    )
    const claimed = ids(claims.flat())
    expect(new Set(claimed).size).toBe(claimed.length)
    const rest = await one.runs.claim('last', 100, minute)
    expect(claimed.length + rest.length).toBe(40)
    expect(await two.runs.claim('none', 100, minute)).toEqual([])
  })

  test('a run that is not due is not claimed', async () => {
    const { one } = await open()
    await one.runs.start(newRun('later', { state: { state: 'ready', due: { inMillis: minute } } }))
    await one.runs.start(newRun('waiting', { state: { state: 'waiting' } }))
    await one.runs.start(newRun('past', { state: { state: 'ready', due: { at: new Date(1) } } }))
    expect(ids(await one.runs.claim('w', 10, minute))).toEqual(['past'])
  })

  test('a run with an expired lease is claimed again, and the first claim can commit nothing', async () => {
    const { one, two } = await open()
    await one.runs.start(newRun('a'))
    const stale = await claimOne(one.runs, noLease)
    const fresh = await claimOne(two.runs)
    expect(fresh).toMatchObject({ head: { id: 'a' }, fence: stale.fence + 1, attempt: 2 })
    const late = commitOf(stale, { state: 'completed' }, { audit: [auditRow('late')], steps: [stepRecord(1)] })
    await expect(one.runs.commit(late)).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect(await one.runs.renew(claimOf(stale), minute)).toBe(false)
    expect(await one.runs.release(claimOf(stale))).toBe(false)
    expect((await one.audit.list({ limit: 1 })).rows).toEqual([])
    expect(await one.runs.steps('a')).toEqual([])
    expect(await two.runs.renew(claimOf(fresh), minute)).toBe(true)
    expect(await two.runs.commit(commitOf(fresh, { state: 'completed' }))).toBe('completed')
    await expect(two.runs.commit(commitOf(fresh, { state: 'completed' }))).rejects.toMatchObject({
      code: 'VERSION_MISMATCH',
    })
  })

  test('a claim with an expired lease is valid until another worker claims the run', async () => {
    const { one } = await open()
    await one.runs.start(newRun('a'))
    const claimed = await claimOne(one.runs, noLease)
    expect(await one.runs.commit(commitOf(claimed, { state: 'completed' }))).toBe('completed')
  })

  test('a released run is free at once and its attempts do not increase', async () => {
    const { one, two } = await open()
    await one.runs.start(newRun('a'))
    expect(await one.runs.release(claimOf(await claimOne(one.runs)))).toBe(true)
    expect(await claimOne(two.runs)).toMatchObject({ attempt: 1, fence: 2 })
  })

  test('on SQLite the claims of a dead process are free at once', async () => {
    const { one, dialect } = await open()
    await one.runs.start(newRun('a'))
    await claimOne(one.runs)
    const freed = dialect === 'sqlite' ? 1 : 0
    expect(await one.runs.recover()).toBe(freed)
    expect(await one.runs.claim('w', 1, minute)).toHaveLength(freed)
  })

  test('the runs of one subject are executed in order, one at a time', async () => {
    const { one, two } = await open()
    const subject = 'Bob'
    await one.runs.start(newRun('1', { head: { subject } }))
    await one.runs.start(newRun('2', { head: { subject: 'bob' } }))
    await one.runs.start(newRun('3', { head: { subject } }))
    await one.runs.start(newRun('other'))
    const first = await one.runs.claim('w', 10, minute)
    expect(ids(first).sort()).toEqual(['1', 'other'])
    expect(await two.runs.claim('w', 10, minute)).toEqual([])
    const [run] = first.filter(({ head: { id } }) => id === '1')
    if (run === undefined) throw new Error('no first run')
    await one.runs.commit(commitOf(run, { state: 'ready', due: { inMillis: minute }, attempt: 1 }))
    expect(await two.runs.claim('w', 10, minute), 'one that is to be tried again holds up those behind it').toEqual([])
  })

  test('waiting runs and incidents delay no others; the next run is woken', async () => {
    const { one, woken } = await open()
    const subject = 'bob'
    for (const id of ['1', '2', '3', '4']) await one.runs.start(newRun(id, { head: { subject } }))
    woken.length = 0
    await one.runs.commit(commitOf(await claimOne(one.runs), { state: 'waiting' }))
    const incident = { task: 't', code: 'TARGET_FAILED', message: 'it said no' }
    await one.runs.commit(commitOf(await claimOne(one.runs), { state: 'incident', incident }))
    await one.runs.commit(commitOf(await claimOne(one.runs), { state: 'completed' }))
    expect(woken).toEqual(['2', '3', '4'])
    expect((await claimOne(one.runs)).head.id).toBe('4')
    expect((await shown(one.runs, '2')).incident).toEqual(incident)
    await one.runs.signal('1', { timer: 'due' }, {})
    expect(await one.runs.claim('w', 10, minute), 'the fourth is running').toEqual([])
  })

  test('many workers execute one run of a subject at a time', async () => {
    const { one, two, sql } = await open()
    for (let i = 0; i < 6; i++)
      await one.runs.start(newRun(`${i}`, { head: { subject: 'bob' }, state: { state: 'waiting' } }))
    const executed: string[] = []
    await Promise.all([
      ...Array.from({ length: 6 }, (_, i) => one.runs.signal(`${5 - i}`, {}, {})),
      ...[one, two].map(async ({ runs }) => {
        for (let turn = 0; turn < 200 && executed.length < 6; turn++) {
          for (const run of await runs.claim('w', 5, minute)) {
            const [row] = await sql("select count(*) as n from runs where state = 'running'")
            expect(Number(row?.['n'])).toBe(1)
            await runs.commit(commitOf(run, { state: 'completed' }))
            executed.push(run.head.id)
          }
        }
      }),
    ])
    expect(executed.sort()).toEqual(['0', '1', '2', '3', '4', '5'])
  })
})
