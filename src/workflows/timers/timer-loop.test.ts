import { expect, onTestFinished, test } from 'vitest'
import type { When } from '#kernel/time.ts'
import { recordingLogger } from '#testing/workflows/workflow-fixture.ts'
import type { ClaimedTimer } from './timer.ts'
import { TimerLoop, type TimerQueue } from './timer-loop.ts'

class MemoryTimers implements TimerQueue {
  readonly due: ClaimedTimer[] = []
  readonly ended: string[] = []
  readonly given: [string, When][] = []

  async claim(limit: number) {
    return this.due.splice(0, limit)
  }

  async done({ id }: ClaimedTimer) {
    this.ended.push(id)
    return true
  }

  async release({ id }: ClaimedTimer, due: When) {
    this.given.push([id, due])
    return true
  }
}

const timer = (id: string, kind: string): ClaimedTimer => ({ id, kind, fence: 1, due: new Date(), data: {} })

function open() {
  const store = new MemoryTimers()
  const log = recordingLogger()
  const loop = new TimerLoop({ store, log, everyMillis: 5 })
  onTestFinished(() => loop.close())
  return { store, log, loop }
}

test('each timer goes to the handler of its kind, whose result decides about it', async () => {
  const { store, loop } = open()
  const seen: string[] = []
  loop.on('a', async ({ id }) => {
    seen.push(id)
    return 'done'
  })
  loop.on('b', async () => 'ended')
  loop.on('c', async () => ({ again: { inMillis: 7 } }))
  store.due.push(timer('1', 'a'), timer('2', 'b'), timer('3', 'c'), timer('4', 'a'))
  expect(await loop.sweep()).toBe(4)
  expect(seen).toEqual(['1', '4'])
  expect(store.ended).toEqual(['1', '4'])
  expect(store.given).toEqual([['3', { inMillis: 7 }]])
})

test('one that fails, or whose kind is unknown, comes again and stops no other', async () => {
  const { store, loop, log } = open()
  loop.on('bad', async () => {
    throw new Error('broken')
  })
  loop.on('good', async () => 'done')
  store.due.push(timer('1', 'bad'), timer('2', 'unheard'), timer('3', 'good'))
  await loop.sweep()
  expect(store.ended).toEqual(['3'])
  expect(store.given.map(([id]) => id).sort()).toEqual(['1', '2'])
  expect(log.lines.map(({ level }) => level)).toEqual(['warn', 'warn'])
})

test('all due timers are handled, in batches', async () => {
  const { store, loop } = open()
  loop.on('a', async () => 'done')
  for (let i = 0; i < 120; i++) store.due.push(timer(String(i), 'a'))
  expect(await loop.sweep()).toBe(120)
})

test('runs repeatedly, even after a failure, until it is closed, which waits for handlers', async () => {
  const { store, loop } = open()
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  let claims = 0
  const claim = store.claim.bind(store)
  store.claim = async (limit) => {
    if (++claims === 1) throw new Error('database away')
    return claim(limit)
  }
  loop.on('slow', async () => {
    begun.resolve()
    await gate.promise
    return 'done'
  })
  store.due.push(timer('1', 'slow'))
  loop.start()
  await begun.promise
  let closed = false
  const closing = loop.close().then(() => {
    closed = true
  })
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(closed).toBe(false)
  gate.resolve()
  await closing
  expect(store.ended).toEqual(['1'])
})

test('a kind has one handler', () => {
  const { loop } = open()
  loop.on('a', async () => 'done')
  expect(() => loop.on('a', async () => 'done')).toThrow('have a handler already')
})
