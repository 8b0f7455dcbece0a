import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { QuietCall } from './quiet-call.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const options = { quietMillis: 100, mostQuietMillis: 1_000, onError: () => {} }

test('a burst leads to one call, after it', async () => {
  const work = vi.fn(async () => {})
  const call = new QuietCall(work, options)
  for (let i = 0; i < 5; i++) {
    call.request()
    await vi.advanceTimersByTimeAsync(50)
  }
  expect(work).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(100)
  expect(work).toHaveBeenCalledTimes(1)
})

test('endless requests do not postpone the call forever', async () => {
  const work = vi.fn(async () => {})
  const call = new QuietCall(work, options)
  for (let i = 0; i < 30; i++) {
    call.request()
    await vi.advanceTimersByTimeAsync(50)
  }
  expect(work).toHaveBeenCalledTimes(1)
})

test('requests during a call lead to another one after it, never concurrently', async () => {
  let under = 0
  let most = 0
  const onError = vi.fn()
  const work = vi.fn(async () => {
    most = Math.max(most, ++under)
    await new Promise((resume) => setTimeout(resume, 500))
    under--
    throw new Error('failed')
  })
  const call = new QuietCall(work, { ...options, onError })
  call.request()
  await vi.advanceTimersByTimeAsync(200)
  call.request()
  await vi.advanceTimersByTimeAsync(2_000)
  expect([work.mock.calls.length, most, onError.mock.calls.length]).toEqual([2, 1, 2])
  const closing = call.close()
  call.request()
  await vi.advanceTimersByTimeAsync(2_000)
  await closing
  expect(work).toHaveBeenCalledTimes(2)
})
