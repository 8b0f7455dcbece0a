import { expect, test } from 'vitest'
import { memoryGrowth, type SoakSample, soakTable } from './soak-report.ts'

const sample = (seconds: number, residentMegabytes: number, p99 = 5): SoakSample => ({
  minutes: seconds / 60,
  residentMegabytes,
  heapMegabytes: 80,
  openFiles: 40,
  timers: 12,
  databaseMegabytes: 30,
  perSecond: 250,
  p99,
})

const during = (minutes: number, memory: (minute: number) => number): SoakSample[] =>
  Array.from({ length: minutes * 6 }, (_, n) => sample((n + 1) * 10, memory(Math.floor(n / 6) + 1)))

test('memory is that of the last minute beside minute ten', () => {
  expect(memoryGrowth(during(12, (minute) => (minute < 10 ? 50 : minute * 10)))).toBeCloseTo(1.2)
})

test('a short soak does not judge memory', () => {
  expect(memoryGrowth(during(10, () => 100))).toBeUndefined()
  expect(memoryGrowth([])).toBeUndefined()
})

test('the table has a row for each minute, with the worst p99', () => {
  const samples = [sample(10, 100, 3), sample(20, 300, 90), sample(60, 200, 4), sample(70, 210)]
  expect(soakTable(samples).split('\n').slice(1)).toEqual([
    '1       200 MB    80 MB  40          12      30 MB     250/s     90.0 ms',
    '2       210 MB    80 MB  40          12      30 MB     250/s     5.0 ms',
  ])
})
