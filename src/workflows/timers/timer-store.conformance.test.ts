import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { minute, noLease, workflowStores } from '#testing/databases/workflow-stores.ts'
import type { NewTimer } from './timer.ts'

const timer = (id: string, more: Partial<NewTimer> = {}): NewTimer => ({
  id,
  kind: 'reminder',
  due: { inMillis: noLease },
  ...more,
})

const ids = (timers: readonly { readonly id: string }[]): string[] => timers.map(({ id }) => id)

onEachDatabase('timers', (freshUrl) => {
  const open = async () => workflowStores(await freshUrl())

  test('due timers are claimed, earliest first, with all their fields', async () => {
    const { one, two } = await open()
    const full = timer('b', { due: { at: new Date(1000) }, run: 'r', approval: 'a', data: { n: [1] } })
    await one.runs.record({ timers: [timer('c', { due: { at: new Date(2000) } }), full] })
    await one.runs.record({ timers: [timer('later', { due: { inMillis: minute } })] })
    expect(await two.timers.claim(10, minute)).toEqual([
      { id: 'b', fence: 1, kind: 'reminder', due: new Date(1000), run: 'r', approval: 'a', data: { n: [1] } },
      { id: 'c', fence: 1, kind: 'reminder', due: new Date(2000), data: {} },
    ])
  })

  test('concurrent claims never return the same timer', async () => {
    const { one, two } = await open()
    await one.runs.record({ timers: Array.from({ length: 30 }, (_, i) => timer(`${i}`)) })
    const claims = await Promise.all(
      Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? one : two).timers.claim(5, minute)),
    )
    const claimed = [...claims.flat(), ...(await one.timers.claim(100, minute))]
    expect(claimed).toHaveLength(30)
    expect(new Set(ids(claimed)).size).toBe(30)
  })

  test('a timer with an expired lease can be claimed again, which voids the first claim', async () => {
    const { one, two } = await open()
    await one.runs.record({ timers: [timer('a')] })
    const [stale] = await one.timers.claim(1, noLease)
    const [held] = await two.timers.claim(1, minute)
    if (stale === undefined || held === undefined) throw new Error('no timer')
    expect(held.fence).toBe(stale.fence + 1)
    expect(await one.timers.done(stale)).toBe(false)
    expect(await one.timers.release(stale, { inMillis: 0 })).toBe(false)
    expect(await two.timers.release(held, { inMillis: noLease })).toBe(true)
    const [again] = await one.timers.claim(1, minute)
    if (again === undefined) throw new Error('no timer')
    expect(await one.timers.done(again)).toBe(true)
    expect(await one.timers.done(again)).toBe(false)
    expect(await two.timers.claim(1, minute)).toEqual([])
  })

  test('a released timer is not due before its new time', async () => {
    const { one } = await open()
    await one.runs.record({ timers: [timer('a')] })
    const [held] = await one.timers.claim(1, minute)
    if (held === undefined) throw new Error('no timer')
    await one.timers.release(held, { inMillis: minute })
    expect(await one.timers.claim(1, minute)).toEqual([])
  })
})
