import { expect, test } from 'vitest'
import { KeyedLock } from './keyed-lock.ts'

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('one at a time by key, in order, whatever fails', async () => {
  const lock = new KeyedLock(10)
  const log: string[] = []
  const work =
    (name: string, fail = false) =>
    async () => {
      log.push(`start ${name}`)
      await tick()
      log.push(`end ${name}`)
      if (fail) throw new Error(name)
      return name
    }
  const results = await Promise.allSettled([
    lock.run('k', work('a', true)),
    lock.run('k', work('b')),
    lock.run('other', work('c')),
  ])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
  expect(log.indexOf('end a')).toBeLessThan(log.indexOf('start b'))
  expect(log.indexOf('start c')).toBeLessThan(log.indexOf('end a'))
})

test('what waits is bounded, and room comes back', async () => {
  const lock = new KeyedLock(2)
  const running = [lock.run('k', tick), lock.run('k', tick)]
  await expect(lock.run('x', tick)).rejects.toMatchObject({ status: 429 })
  await Promise.all(running)
  await expect(lock.run('x', tick)).resolves.toBeUndefined()
})

test('a part of work that runs already is never refused, but waits its turn', async () => {
  const lock = new KeyedLock(1)
  const log: string[] = []
  const nested = (name: string) =>
    lock.within('user', async () => {
      log.push(`start ${name}`)
      await tick()
      log.push(`end ${name}`)
    })
  await lock.run('group', async () => {
    await Promise.all([nested('a'), nested('b')])
  })
  expect(log).toEqual(['start a', 'end a', 'start b', 'end b'])
})
