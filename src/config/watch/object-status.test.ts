import { describe, expect, test } from 'vitest'
import type { LocatedIssue } from '#config/context/located-issue.ts'
import { objectVerdict, statusToWrite } from './object-status.ts'

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
    expect(objectVerdict({ place, runs: true }, { issues, found: [], applied: false })).toEqual({
      status: 'False',
      reason: 'Invalid',
      message: 'spec.a: is wrong\nis wrong',
    })
  })

  test('a valid object is served, still runs, or waits', () => {
    const issues = Array.from({ length: 8 }, (_, i) => issue(`Org/ns/${i}`, 'error', 'spec'))
    expect(objectVerdict({ place, runs: false }, { issues: [], found: [], applied: true })).toMatchObject({
      reason: 'Served',
    })
    expect(objectVerdict({ place, runs: true }, { issues, found: [], applied: false })).toMatchObject({
      status: 'True',
    })
    expect(objectVerdict({ place, runs: false }, { issues, found: [], applied: false })).toEqual({
      status: 'False',
      reason: 'Waiting',
      message:
        'not served before errors elsewhere are fixed: Org/ns/0, Org/ns/1, Org/ns/2, Org/ns/3, Org/ns/4 and 3 more',
    })
    const failed = { issues: [], found: [], applied: false, failure: 'see the log' }
    expect(objectVerdict({ place, runs: false }, failed)).toMatchObject({
      reason: 'NotStarted',
      message: 'see the log',
    })
  })

  test('an object is set aside because of its own errors, or of another object', () => {
    const cause = { object: 'Target "k8s"', at: 'Target/ns/k8s', message: 'spec.className: unknown', own: false }
    const found = [{ kind: 'Target', name: 'a', file: place, line: undefined, errors: 0, warnings: 0, cause }]
    expect(objectVerdict({ place, runs: false }, { issues: [], found, applied: true })).toEqual({
      status: 'False',
      reason: 'SetAside',
      message: 'because of Target "k8s" (Target/ns/k8s): spec.className: unknown',
    })
    const issues = [issue(place, 'error', 'spec.a')]
    const own = [{ ...found[0], errors: 1 }] as typeof found
    expect(objectVerdict({ place, runs: false }, { issues, found: own, applied: true })).toEqual({
      status: 'False',
      reason: 'SetAside',
      message: 'spec.a: is wrong',
    })
    // A change that would set it aside was refused, so that it is still served.
    expect(objectVerdict({ place, runs: true }, { issues: [], found, applied: false })).toMatchObject({
      status: 'True',
    })
  })

  test('warnings do not keep it from being ready', () => {
    const issues = [issue(place, 'warning', 'spec.w')]
    expect(objectVerdict({ place, runs: false }, { issues, found: [], applied: true })).toEqual({
      status: 'True',
      reason: 'ServedWithWarnings',
      message: 'spec.w: is wrong',
    })
  })

  test('its message is bounded', () => {
    const issues = Array.from({ length: 1000 }, (_, i) => issue(place, 'error', `spec.a[${i}]`, 'x'.repeat(100)))
    expect(objectVerdict({ place, runs: false }, { issues, found: [], applied: false }).message.length).toBe(4000)
    // Half a surrogate pair would come back as another character, and be written again and again.
    for (const message of ['😀'.repeat(3000), `x${'😀'.repeat(3000)}`, '\ud83d']) {
      const verdict = objectVerdict(
        { place, runs: false },
        { issues: [issue(place, 'error', '', message)], found: [], applied: false },
      )
      expect(verdict.message.isWellFormed()).toBe(true)
    }
  })
})

describe('a status', () => {
  const loaded = { status: 'True', reason: 'Served', message: 'served' } as const
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
