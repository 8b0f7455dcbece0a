import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { minute, noLease } from '#testing/databases/workflow-stores.ts'

const time = { job: 'reminders', due: new Date(Date.UTC(2020, 0, 1)) }

onEachDatabase('job runs', (freshUrl) => {
  const open = async () => openStores(await freshUrl())

  test('lets one worker run each due time', async () => {
    const { one, two } = await open()
    for (let day = 1; day <= 5; day++) {
      const due = new Date(Date.UTC(2020, 0, day))
      const begun = await Promise.all(
        Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? one : two).jobRuns.begin({ ...time, due }, `w${i}`, minute)),
      )
      expect(begun.filter((claim) => claim !== undefined)).toEqual([{ job: 'reminders', due, fence: 1 }])
    }
    expect(await one.jobRuns.begin({ ...time, job: 'other' }, 'w', minute)).toBeDefined()
    expect(await one.jobRuns.list('reminders', 3)).toMatchObject(
      [5, 4, 3].map((day) => ({ due: new Date(Date.UTC(2020, 0, day)) })),
    )
  })

  test("does not begin before the due time by the database's clock", async () => {
    const { one } = await open()
    const due = new Date(Date.now() + 10 * minute)
    expect(await one.jobRuns.begin({ ...time, due }, 'w', minute)).toBeUndefined()
    expect(await one.jobRuns.list('reminders', 1)).toEqual([])
  })

  test('replaces a worker whose lease expired, and ignores its late end', async () => {
    const { one, two } = await open()
    const stale = await one.jobRuns.begin(time, 'dead', noLease)
    if (stale === undefined) throw new Error('not begun')
    expect(await two.jobRuns.abandoned(5)).toEqual([time])
    const begun = await Promise.all([one, two, one, two].map(({ jobRuns }) => jobRuns.begin(time, 'w', minute)))
    const [taken, ...others] = begun.filter((claim) => claim !== undefined)
    expect(others).toEqual([])
    if (taken === undefined) throw new Error('not taken')
    expect(await one.jobRuns.abandoned(5)).toEqual([])
    expect(await one.jobRuns.renew(stale, minute)).toBe(false)
    expect(await one.jobRuns.end(stale)).toBe(false)
    expect(await two.jobRuns.renew(taken, minute)).toBe(true)
    expect(await two.jobRuns.end(taken, 'it failed\0')).toBe(true)
    expect(await two.jobRuns.end(taken)).toBe(false)
    expect(await one.jobRuns.list('reminders', 5)).toMatchObject([
      { state: 'failed', worker: 'w', error: 'it failed\ufffd', ended: expect.any(Date) },
    ])
    expect(await one.jobRuns.begin(time, 'w', minute)).toBeUndefined()
  })

  test('removes old runs that have ended', async () => {
    const { one } = await open()
    const claim = await one.jobRuns.begin(time, 'w', minute)
    if (claim === undefined) throw new Error('not begun')
    await one.jobRuns.begin({ ...time, job: 'under way' }, 'w', minute)
    await one.jobRuns.end(claim)
    expect(await one.jobRuns.list('reminders', 1)).toMatchObject([{ state: 'done' }])
    expect(await one.jobRuns.prune(new Date(0))).toBe(0)
    expect(await one.jobRuns.prune(new Date(Date.now() + minute))).toBe(1)
    expect(await one.jobRuns.list('under way', 1)).toHaveLength(1)
  })
})
