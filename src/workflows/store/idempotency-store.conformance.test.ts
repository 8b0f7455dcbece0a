import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { minute, newRun, noLease } from '#testing/databases/workflow-stores.ts'
import type { IdempotentCall } from './idempotency-store.ts'

const call = (run: string, more: Partial<IdempotentCall> = {}): IdempotentCall => ({
  scope: 'alice',
  key: 'k-1',
  bodyHash: 'hash',
  run,
  ...more,
})

onEachDatabase('idempotent calls', (freshUrl) => {
  const open = async () => openStores(await freshUrl())

  test('starts one run for concurrent calls with one key and returns it to all of them', async () => {
    const { one, two } = await open()
    const started = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        (i % 2 === 0 ? one : two).runs.start(newRun(`${i}`), { idempotency: call(`${i}`) }),
      ),
    )
    expect(started.filter(({ kind }) => kind === 'started')).toHaveLength(1)
    const { runs } = await one.runs.list({ limit: 20 })
    expect(runs).toHaveLength(1)
    const repeated = started.filter(({ kind }) => kind === 'repeated')
    expect(repeated).toEqual(Array.from({ length: 9 }, () => ({ kind: 'repeated', run: runs[0]?.head.id })))
  })

  test('rejects another body under the same key, but not other callers or keys', async () => {
    const { one } = await open()
    const start = (id: string, more: Partial<IdempotentCall> = {}) =>
      one.runs.start(newRun(id), { idempotency: call(id, more) })
    expect(await start('a')).toEqual({ kind: 'started' })
    expect(await start('b', { bodyHash: 'other' })).toEqual({ kind: 'other-body' })
    expect(await start('c', { scope: 'carol' })).toEqual({ kind: 'started' })
    expect(await start('d', { key: 'K-1' })).toEqual({ kind: 'started' })
    expect(await one.runs.get('b')).toBeUndefined()
  })

  test("frees the key if the run can't start", async () => {
    const { one } = await open()
    await one.runs.start(newRun('a'))
    const taken = one.runs.start(newRun('a'), { idempotency: call('a') })
    await expect(taken).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await one.runs.start(newRun('b'), { idempotency: call('b') })).toEqual({ kind: 'started' })
  })

  test('answers a repeated call as the first one when its run is not stored', async () => {
    const { one, two } = await open()
    expect(await one.idempotency.reserve(call('a'), minute)).toEqual({ kind: 'reserved' })
    expect(await two.idempotency.reserve(call('b'), minute)).toEqual({ kind: 'repeated', run: 'a' })
    await one.runs.record({ answer: { ...call('a'), response: { status: 200, body: ['x\0'] } } })
    const answered = { kind: 'repeated', run: 'a', response: { status: 200, body: ['x\0'] } }
    expect(await two.idempotency.reserve(call('b'), minute)).toEqual(answered)
    expect(await two.idempotency.find(call('b'))).toEqual(answered)
    expect(await two.idempotency.find(call('b', { key: 'x' }))).toBeUndefined()
    expect(await one.idempotency.abandon(call('a'))).toBe(false)
  })

  test('lets one repeated call with the same body take over an unanswered one', async () => {
    const { one, two } = await open()
    await one.idempotency.reserve(call('dead'), noLease)
    expect(await one.idempotency.reserve(call('x', { bodyHash: 'other' }), minute)).toEqual({ kind: 'other-body' })
    const again = await Promise.all(
      [one, two, one, two].map(({ idempotency }, i) => idempotency.reserve(call(`${i}`), minute)),
    )
    expect(again.filter(({ kind }) => kind === 'reserved')).toHaveLength(1)
    expect(await one.idempotency.answer({ ...call('dead'), response: {} })).toBe(false)
  })

  test('frees the key of an abandoned call, and removes old calls', async () => {
    const { one } = await open()
    await one.idempotency.reserve(call('a'), minute)
    expect(await one.idempotency.abandon(call('other'))).toBe(false)
    expect(await one.idempotency.abandon(call('a'))).toBe(true)
    expect(await one.idempotency.reserve(call('b', { bodyHash: 'other' }), minute)).toEqual({ kind: 'reserved' })
    expect(await one.idempotency.prune(new Date(0))).toBe(0)
    expect(await one.idempotency.prune(new Date(Date.now() + minute))).toBe(1)
    expect(await one.idempotency.reserve(call('c'), minute)).toEqual({ kind: 'reserved' })
  })

  test("rejects keys that can't be stored", async () => {
    const { one } = await open()
    for (const more of [{ key: 'x'.repeat(501) }, { scope: 'x'.repeat(501) }, { key: 'a\0' }]) {
      await expect(one.idempotency.reserve(call('a', more), minute)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
  })
})
