import { expect, test } from 'vitest'
import { andThen, firstResult, settle } from './awaitable.ts'

const failure = new Error('failed')

test('a value that is there needs no wait, and a promise is awaited', async () => {
  expect(andThen(1, (n) => n + 1)).toBe(2)
  const later = andThen(Promise.resolve(1), (n) => n + 1)
  expect(later).toBeInstanceOf(Promise)
  expect(await later).toBe(2)
  expect(() => andThen(1, () => raise(failure))).toThrow(failure)
  await expect(andThen(Promise.resolve(1), () => raise(failure))).rejects.toBe(failure)
})

test('failures are handled whether they are thrown or rejected', async () => {
  const shown = (work: () => number | Promise<number>) => settle(work, String, (thrown) => `${thrown}`)
  expect(shown(() => 1)).toBe('1')
  expect(shown(() => raise(failure))).toBe('Error: failed')
  expect(await shown(async () => 1)).toBe('1')
  expect(await shown(() => Promise.reject(failure))).toBe('Error: failed')
})

test('items are asked in order until one has a result, whether or not they wait', async () => {
  const asked: number[] = []
  const ask = (waits: boolean) => (item: number, index: number) => {
    asked.push(item, index)
    const result = item === 30 ? 'found' : undefined
    return waits && item === 20 ? Promise.resolve(result) : result
  }
  expect(firstResult([10, 20, 30, 40], ask(false))).toBe('found')
  expect(await firstResult([10, 20, 30, 40], ask(true))).toBe('found')
  expect(asked).toEqual([10, 0, 20, 1, 30, 2, 10, 0, 20, 1, 30, 2])
  expect(firstResult([], ask(false))).toBeUndefined()
  expect(await firstResult([20], ask(true))).toBeUndefined()
})

function raise(error: Error): never {
  throw error
}
