import { expect, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import type { RunChange } from '#workflows/record/run.ts'
import { RunChanges } from './run-changes.ts'

const change = (id: string, millis: number): RunChange => ({
  id,
  state: 'waiting',
  updated: new Date(millis),
  users: [],
  approvers: [],
})

function open() {
  const stored: RunChange[] = []
  let reads = 0
  let most = Number.POSITIVE_INFINITY
  const store = {
    // Later than every change.
    now: async () => new Date(Math.max(100_000, ...stored.map(({ updated }) => updated.getTime()))),
    changes: async (since: Date, limit: number) => {
      reads++
      const changes = stored.filter(({ updated }) => updated >= since).slice(0, Math.min(limit, most))
      return { changes, isComplete: changes.length < Math.min(limit, most) }
    },
  }
  const feed = new RunChanges({ store, log: silentLogger, everyMillis: 1 })
  return { stored, feed, reads: () => reads, limitTo: (limit: number) => (most = limit) }
}

test('each change is announced once, also one that becomes visible late', async () => {
  const { stored, feed, reads } = open()
  stored.push(change('before', 99_000))
  const heard: string[] = []
  feed.listen({ changed: (changes) => heard.push(...changes.map(({ id }) => id)), ended: () => heard.push('ended') })
  await expect.poll(reads).toBeGreaterThan(1)
  stored.push(change('a', 101_000))
  await expect.poll(() => heard).toEqual(['a'])
  stored.splice(1, 0, change('late', 98_000))
  await expect.poll(() => heard).toEqual(['a', 'late'])
  stored.splice(2, 1, change('a', 102_000))
  await expect.poll(() => heard).toEqual(['a', 'late', 'a'])
  await feed.close()
  expect(heard.at(-1)).toBe('ended')
  feed.listen({ changed: () => {}, ended: () => heard.push('at once') })
  expect(heard.at(-1)).toBe('at once')
})

test('changes after those that could not be read are announced', async () => {
  const { stored, feed, reads, limitTo } = open()
  const heard: string[] = []
  feed.listen({ changed: (changes) => heard.push(...changes.map(({ id }) => id)), ended: () => {} })
  await expect.poll(reads).toBeGreaterThan(1)
  limitTo(3)
  stored.push(...Array.from({ length: 5 }, (_, i) => change(`${i}`, 100_000 + i)))
  await expect.poll(() => heard).toContain('2')
  stored.push(change('later', 120_000))
  await expect.poll(() => heard).toContain('later')
  await feed.close()
})

test('more changes than are read are announced as incomplete, and nothing is read while no one listens', async () => {
  const { stored, feed, reads } = open()
  const heard: boolean[] = []
  const end = feed.listen({ changed: (_, complete) => heard.push(complete), ended: () => {} })
  await expect.poll(reads).toBeGreaterThan(1)
  stored.push(...Array.from({ length: 600 }, (_, i) => change(`${i}`, 100_000 + i)))
  await expect.poll(() => heard.includes(false)).toBe(true)
  end()
  // One round may be under way, and ends before a whole pause is over.
  const settled = async (): Promise<boolean> => {
    const before = reads()
    await new Promise((done) => setTimeout(done, 50))
    return reads() === before
  }
  await expect.poll(settled).toBe(true)
  await feed.close()
})
