import { expect, test } from 'vitest'
import { callOutcome } from '../../components/call-outcome.ts'
import { amountOf, formatDuration, unitOf } from './durations.ts'
import { approvalSeries, runOutcomes, runSeries, tokenSeries, totals } from './outcomes.ts'
import { middleOf, type Period, spanOf } from './periods.ts'

const hour = 60 * 60_000

test("a period has whole hours or days in the browser's time zone, and includes the present", () => {
  const now = new Date(2026, 0, 20, 12, 34, 56).getTime()
  const local = (period: Period) => {
    const { by, from, to } = spanOf(period, now)
    return [by, new Date(from).toString().slice(0, 21), (Date.parse(to) - Date.parse(from)) / hour]
  }
  expect(local('24h')).toEqual(['hour', 'Mon Jan 19 2026 13:00', 24])
  expect(local('7d')).toEqual(['day', 'Wed Jan 14 2026 00:00', 7 * 24])
  expect(local('30d')).toEqual(['day', 'Mon Dec 22 2025 00:00', 30 * 24])
  expect(Date.parse(spanOf('24h', now).to)).toBeGreaterThan(now)
})

test('a day that begins an hour before midnight has its own date', () => {
  expect(new Date(middleOf('2026-10-25T23:00:00Z', 'day')).toISOString()).toBe('2026-10-26T11:00:00.000Z')
})

test('every state and status has a series', () => {
  expect([200, 304, 400, 499, 500, 503].map((status) => callOutcome({ status }))).toEqual([
    'answered',
    'answered',
    'refused',
    'refused',
    'failed',
    'failed',
  ])
  const open = { ready: 1, running: 10, waiting: 100, incident: 2 }
  const counts = { ...open, completed: 5, denied: 7, expired: 30, failed: 20, cancelled: 200 }
  expect(runOutcomes(counts)).toEqual({ done: 5, open: 111, denied: 7, ended: 230, bad: 22 })
})

test('totals are in the order of the series', () => {
  const tokens = [
    { refused: 1, issued: 2 },
    { refused: 3, issued: 4 },
  ]
  expect(totals(tokens, tokenSeries)).toEqual([6, 4])
  expect(totals([{ opened: 1, approved: 2, denied: 3, escalated: 4 }], approvalSeries)).toEqual([1, 2, 3, 4])
  expect(totals([], runSeries)).toEqual([0, 0, 0, 0, 0])
})

test('durations use the largest unit with at least two', () => {
  const shown = (millis: number): string => {
    const unit = unitOf(millis)
    return formatDuration('en', millis / unit.millis, unit, 'long')
  }
  expect([0, 400, 90_000, 2.5 * hour, 24 * hour, 60 * 24 * hour].map(shown)).toEqual([
    '0 seconds',
    '0.4 seconds',
    '90 seconds',
    '2.5 hours',
    '24 hours',
    '60 days',
  ])
  expect([amountOf(90_000, unitOf(2 * hour)), amountOf(0, unitOf(0)), amountOf(undefined, unitOf(0))]).toEqual([
    0.025,
    0,
    null,
  ])
  expect(formatDuration('de', 1.5, unitOf(2 * hour), 'long')).toBe('1,5 Stunden')
})
