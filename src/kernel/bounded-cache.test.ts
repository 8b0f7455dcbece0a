import { expect, test } from 'vitest'
import { BoundedCache } from '#kernel/bounded-cache.ts'

const at = (millis: number): Date => new Date(millis)

test('a value is available until its expiry, exclusive', () => {
  let now = 0
  const cache = new BoundedCache<string>(10, () => at(now))
  cache.set('a', 'x', at(100))
  now = 99
  expect(cache.get('a')).toBe('x')
  now = 100
  expect(cache.get('a')).toBeUndefined()
  now = 50
  expect(cache.get('a')).toBeUndefined()
})

test('at the limit the least recently used value is removed', () => {
  const cache = new BoundedCache<string>(2, () => at(0))
  cache.set('a', '1', at(1))
  cache.set('b', '2', at(1))
  cache.get('a')
  cache.set('c', '3', at(1))
  expect(['a', 'b', 'c'].map((key) => cache.get(key))).toEqual(['1', undefined, '3'])
})

test('a value that is set again or deleted does not count twice', () => {
  const cache = new BoundedCache<string>(2, () => at(0))
  cache.set('a', '1', at(1))
  cache.set('b', '2', at(1))
  cache.set('a', '3', at(1))
  expect(['a', 'b'].map((key) => cache.get(key))).toEqual(['3', '2'])
  cache.delete('a')
  cache.set('c', '4', at(1))
  expect(['a', 'b', 'c'].map((key) => cache.get(key))).toEqual([undefined, '2', '4'])
})
