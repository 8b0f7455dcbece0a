import { describe, expect, test } from 'vitest'
import type { LocatedIssue } from '#config/located-issue.ts'
import { objectVerdict, statusToWrite } from '#config/object-status.ts'

const place = 'Target/ns/a'
const issue = (file: string, level: LocatedIssue['level'], path: string, message = 'is wrong'): LocatedIssue => ({
  level,
  file,
  hasLines: false,
  line: 1,
  column: 1,
  path,
  message,
})
const now = new Date('2026-01-02T03:04:05.678Z')

describe('a verdict', () => {
  test('has all errors of its own object, and no others', () => {
    const issues = [
      issue(place, 'error', 'spec.a'),
      issue('Target/ns/ab', 'error', 'spec.other'),
      issue(place, 'warning', 'spec.w'),
      issue(place, 'error', ''),
    ]
    expect(objectVerdict({ place, runs: true }, { issues, applied: false })).toEqual({
      status: 'False',
      reason: 'Invalid',
      message: 'spec.a: is wrong\nis wrong',
    })
  })

  test('a valid object is loaded, still runs, or waits', () => {
    const issues = Array.from({ length: 8 }, (_, i) => issue(`Org/ns/${i}`, 'error', 'spec'))
    expect(objectVerdict({ place, runs: false }, { issues: [], applied: true })).toMatchObject({ reason: 'Loaded' })
    expect(objectVerdict({ place, runs: true }, { issues, applied: false })).toMatchObject({ status: 'True' })
    expect(objectVerdict({ place, runs: false }, { issues, applied: false })).toEqual({
      status: 'False',
      reason: 'Waiting',
      message:
        'not loaded before the errors elsewhere are mended: Org/ns/0, Org/ns/1, Org/ns/2, Org/ns/3, Org/ns/4 and 3 more',
    })
    const failed = { issues: [], applied: false, failure: 'see the log' }
    expect(objectVerdict({ place, runs: false }, failed)).toMatchObject({
      reason: 'NotStarted',
      message: 'see the log',
    })
  })

  test('warnings do not keep it from being ready', () => {
    const issues = [issue(place, 'warning', 'spec.w')]
    expect(objectVerdict({ place, runs: false }, { issues, applied: true })).toEqual({
      status: 'True',
      reason: 'LoadedWithWarnings',
      message: 'spec.w: is wrong',
    })
  })

  test('its message is bounded', () => {
    const issues = Array.from({ length: 1000 }, (_, i) => issue(place, 'error', `spec.a[${i}]`, 'x'.repeat(100)))
    expect(objectVerdict({ place, runs: false }, { issues, applied: false }).message.length).toBe(4000)
    // Half a surrogate pair would come back as another character, and be written again and again.
    for (const message of ['😀'.repeat(3000), `x${'😀'.repeat(3000)}`, '\ud83d']) {
      const verdict = objectVerdict(
        { place, runs: false },
        { issues: [issue(place, 'error', '', message)], applied: false },
      )
      expect(verdict.message.isWellFormed()).toBe(true)
    }
  })
})

describe('a status', () => {
  const loaded = { status: 'True', reason: 'Loaded', message: 'loaded' } as const
  const broken = { status: 'False', reason: 'Invalid', message: 'no' } as const

  test('is written once for a generation, and again after a change', () => {
    const first = statusToWrite(undefined, loaded, 1, now)
    expect(first).toEqual({
      observedGeneration: 1,
      conditions: [{ type: 'Ready', ...loaded, observedGeneration: 1, lastTransitionTime: '2026-01-02T03:04:05Z' }],
    })
    expect(statusToWrite(first, loaded, 1, now)).toBeUndefined()
    expect(statusToWrite(first, loaded, 2, now)).toMatchObject({ observedGeneration: 2 })
    expect(statusToWrite(first, broken, 1, now)).toMatchObject({ conditions: [{ status: 'False' }] })
  })

  test('keeps the time of its last transition, and the data of others', () => {
    const other = { type: 'Synced', status: 'True' }
    const before = {
      digest: 'of another',
      conditions: [other, { type: 'Ready', ...broken, lastTransitionTime: '2020-01-01T00:00:00Z' }],
    }
    expect(statusToWrite(before, { ...broken, message: 'still no' }, 4, now)).toMatchObject({
      digest: 'of another',
      conditions: [other, { message: 'still no', lastTransitionTime: '2020-01-01T00:00:00Z' }],
    })
    expect(statusToWrite(before, loaded, 4, now)).toMatchObject({
      conditions: [other, { lastTransitionTime: '2026-01-02T03:04:05Z' }],
    })
  })

  test.each([null, 'x', [], { conditions: 'x' }, { conditions: [null, 1] }])('%j is ignored', (present) => {
    expect(statusToWrite(present, loaded, 1, now)).toMatchObject({ observedGeneration: 1 })
  })
})
