import { expect, test } from 'vitest'
import type { Ordered } from '#identity/paging.ts'
import { LongAnswers } from './ldap-lookups.ts'

const scope = { of: 'users', filter: undefined, sort: undefined }
const names = (count: number, item = 'x'): Ordered<string> => ({
  scope,
  all: Array.from({ length: count }, (_, i) => ({ item, key: `${i}`, sort: { folded: undefined, exact: '' } })),
})

function opened(millis = 1000) {
  let now = 0
  const answers = new LongAnswers(millis, () => now)
  let passes = 0
  const read = (key = 'k', answer = names(3)) =>
    answers.read(key, async () => {
      passes++
      return answer
    })
  const wait = (ms: number): void => {
    now += ms
  }
  return { answers, read, passes: () => passes, wait }
}

test('the pages of an answer cost one pass, until it expires', async () => {
  const { answers, read, passes, wait } = opened()
  await Promise.all([read(), read()])
  wait(999)
  await read()
  expect([passes(), answers.recall('k')?.all.length, answers.recall('other')]).toEqual([1, 3, undefined])
  wait(1)
  expect(answers.recall('k')).toBeUndefined()
  await read()
  expect(passes()).toBe(2)
})

test('a change invalidates it, and a pass that began before the change does not serve later searches', async () => {
  const { answers, read, passes } = opened()
  await read()
  answers.forget()
  expect(answers.recall('k')).toBeUndefined()
  const { promise: stalled, resolve: finish } = Promise.withResolvers<Ordered<string>>()
  const early = answers.read('k', () => stalled)
  answers.forget()
  const late = await read('k', names(4))
  finish(names(3))
  expect([(await early).all.length, late.all.length, answers.recall('k')?.all.length]).toEqual([3, 4, 4])
  expect(passes()).toBe(2)
})

test('the next search repeats a failed pass', async () => {
  const { answers, read } = opened()
  await expect(answers.read('k', () => Promise.reject(new Error('away')))).rejects.toThrow('away')
  expect((await read()).all).toHaveLength(3)
})

test('the cache is bounded, oldest first, and unused if its lifetime is 0', async () => {
  const { answers, read } = opened()
  for (const key of ['a', 'b', 'c']) await read(key, names(100_000))
  expect(['a', 'b', 'c'].map((key) => answers.recall(key) !== undefined)).toEqual([false, true, true])
  await read('too many', names(250_001))
  await read('x'.repeat(10_001))
  expect(answers.recall('too many') ?? answers.recall('x'.repeat(10_001))).toBeUndefined()
  const never = opened(0)
  await never.read()
  expect(never.answers.recall('k')).toBeUndefined()
})
