import { expect, test } from 'vitest'
import { DecisionTimes } from './decision-times.ts'

test('returns the median of a workflow that has enough decisions, and reads them again after a while', async () => {
  let now = 0
  let reads = 0
  const took = (workflow: string, ...millis: readonly number[]) => millis.map((one) => ({ workflow, millis: one }))
  const latestDecisions = async () => {
    reads++
    if (reads === 1) throw new Error('the database is away')
    return [...took('odd', 9, 1, 5, 3, 100), ...took('even', 1, 2, 4, 5, 6, 7), ...took('rare', 1, 1, 1, 1)]
  }
  const times = new DecisionTimes({ latestDecisions }, () => new Date(now))
  await expect(times.medianOf('odd')).rejects.toThrow('away')
  expect(await times.medianOf('odd')).toBe(5)
  expect(await times.medianOf('even')).toBe(5)
  expect(await times.medianOf('rare')).toBeUndefined()
  expect(reads).toBe(2)
  now += 10 * 60_000
  await times.medianOf('odd')
  expect(reads).toBe(3)
})
