import { expect, test } from 'vitest'
import { bucketsOf, countsBy } from './buckets.ts'
import { callOutcome, runOutcome } from './outcomes.ts'

const kinds = ['ok', 'bad'] as const
const hour = 60 * 60_000
const now = Date.parse('2026-01-01T12:30:00Z')
const read = ([at, kind]: readonly [string, 'ok' | 'bad']) => ({ at, kind })

test('what happened is counted in the hour in which it did, and what lies outside is not', () => {
  const items = [
    ['2026-01-01T12:29:59Z', 'ok'],
    ['2026-01-01T12:00:00Z', 'bad'],
    ['2026-01-01T11:59:59Z', 'ok'],
    ['2026-01-01T09:00:00Z', 'ok'],
    ['2027-01-01T00:00:00Z', 'ok'],
    ['nonsense', 'ok'],
  ] as const
  const buckets = bucketsOf(items, kinds, read, { now, millis: 3 * hour, parts: 3 })
  expect(buckets.map(({ from, counts }) => [new Date(from).toISOString(), counts.ok, counts.bad])).toEqual([
    ['2026-01-01T10:00:00.000Z', 0, 0],
    ['2026-01-01T11:00:00.000Z', 1, 0],
    ['2026-01-01T12:00:00.000Z', 1, 1],
  ])
})

test('names with most come first, and only so many', () => {
  const items = ['a', 'b', 'b', '__proto__', '__proto__', '__proto__'] as const
  const found = countsBy(items, kinds, (name) => ({ name, kind: 'ok' as const }), 2)
  expect(found).toEqual([
    { name: '__proto__', counts: { ok: 3, bad: 0 } },
    { name: 'b', counts: { ok: 2, bad: 0 } },
  ])
})

test('every state and status is something', () => {
  expect([200, 304, 400, 404, 500, 503].map((status) => callOutcome({ status }))).toEqual([
    'ok',
    'ok',
    'refused',
    'refused',
    'broken',
    'broken',
  ])
  expect(runOutcome('waiting')).toBe('open')
  expect(runOutcome('incident')).toBe('bad')
})
