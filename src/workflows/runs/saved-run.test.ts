import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { ReadVersion } from '#sdk/workflow/workflow.ts'
import type { TaskSignal, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { runHead } from '#testing/workflows/run-head.ts'
import type { Frame, RunProgress } from '#workflows/steps/run-progress.ts'
import { checkSize, restoreRun, type SavedRun, saveRun, skipTask } from './saved-run.ts'

const optional = { requiredKeys: [] }
const text = fc.string({ unit: 'grapheme', maxLength: 12 })
const name = fc.oneof(text, fc.constantFrom('mail', 'userPassword', 'apiToken', '__proto__', 'constructor'))
const texts = fc.array(text, { maxLength: 3 })
const versions = fc
  .array(
    fc.record(
      { target: text, version: text, userID: text, group: fc.record({ name: text, id: text }) },
      { requiredKeys: ['target', 'version'] },
    ),
  )
  .map((read) => new Map(read.map((one): [string, ReadVersion] => [one.target, one])))

const users = (maps: fc.Arbitrary<Map<string, ReadVersion> | undefined>): fc.Arbitrary<WorkflowUser> =>
  fc
    .record({
      always: fc.record({ userID: text, groups: texts, keepGroups: fc.boolean() }),
      attributes: fc.array(fc.tuple(name, fc.array(text, { minLength: 1, maxLength: 3 })), { maxLength: 5 }),
      sometimes: fc.record(
        {
          id: text,
          version: text,
          groupIds: texts,
          created: fc.date({ noInvalidDate: true }),
          modified: fc.date({ noInvalidDate: true }),
          cleared: texts,
          groupChanges: fc.record({ add: texts, remove: texts }),
          timedGroups: fc.array(
            fc.record({
              name: text,
              expiry: fc.oneof(
                fc.record({ at: fc.date({ noInvalidDate: true }) }),
                fc.record({ after: fc.record({ months: fc.nat(), millis: fc.nat() }) }),
              ),
            }),
            { maxLength: 3 },
          ),
          requestReason: text,
          newUserID: text,
          password: text,
        },
        optional,
      ),
      basedOn: maps,
    })
    .map(({ always, attributes, sometimes, basedOn }) => ({
      ...always,
      ...(sometimes as Partial<WorkflowUser>),
      attributes: Attributes.from(attributes),
      ...(basedOn === undefined ? {} : { basedOn }),
    }))

const signals: fc.Arbitrary<TaskSignal | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.constant({ kind: 'time' as const }),
  fc.record(
    { kind: fc.constant('approval' as const), approval: text, approved: fc.boolean(), by: text, comment: text },
    { requiredKeys: ['kind', 'approval', 'approved'] },
  ),
)

const head = runHead()

const states: fc.Arbitrary<RunProgress> = versions.chain((shared) => {
  const user = users(fc.constantFrom(undefined, shared))
  const frame = fc.record(
    { workflow: text, hash: text, place: text, next: fc.nat(100), user },
    { requiredKeys: ['workflow', 'hash', 'place', 'next'] },
  ) as fc.Arbitrary<Frame>
  return fc
    .record({
      user,
      request: fc.array(fc.tuple(name, fc.oneof(text, fc.integer(), fc.array(text), fc.constant(null)))),
      frames: fc.array(frame, { maxLength: 4 }),
      pins: fc.array(fc.tuple(text, text)),
      steps: fc.nat(1000),
      signal: signals,
      bound: fc.option(fc.record({ attributes: fc.oneof(fc.constant('any' as const), texts) }), { nil: undefined }),
    })
    .map(({ request, pins, signal, bound, ...others }) => ({
      head,
      ...others,
      request: new Map<string, unknown>(request),
      pins: new Map(pins),
      ...(signal === undefined ? {} : { signal }),
      ...(bound === undefined ? {} : { bound }),
    }))
})

/** For comparing: attributes in one order, and everything plain. */
const plainUser = ({ attributes, basedOn, ...user }: WorkflowUser) => ({
  ...user,
  attributes: [...attributes].sort(([a], [b]) => (a < b ? -1 : 1)),
  basedOn: basedOn && [...basedOn],
})

const plain = ({ user, frames, request, pins, ...state }: RunProgress) => ({
  ...state,
  user: plainUser(user),
  frames: frames.map(({ user: copy, ...frame }) => ({ ...frame, user: copy && plainUser(copy) })),
  request: [...request].sort(([a], [b]) => (a < b ? -1 : 1)),
  pins: [...pins],
})

const throughText = (saved: SavedRun): SavedRun => JSON.parse(JSON.stringify(saved)) as SavedRun
const smallest: RunProgress = {
  head,
  user: { userID: 'u', attributes: new Attributes(), groups: [], keepGroups: false },
  request: new Map(),
  frames: [{ workflow: 'w', hash: 'h', place: '', next: 2 }],
  pins: new Map(),
  steps: 2,
}

describe('a saved run', () => {
  test('survives storing', () => {
    fc.assert(
      fc.property(states, (state) => {
        expect(plain(restoreRun(head, throughText(saveRun(state))))).toEqual(plain(state))
      }),
    )
  })

  test('users that share their versions still share them', () => {
    const basedOn = new Map([['t', { target: 't', version: '1' }]])
    const user = { ...smallest.user, basedOn }
    const frame = { workflow: 'w', hash: 'h', place: '', next: 0, user: { ...smallest.user, basedOn } }
    const restored = restoreRun(head, throughText(saveRun({ ...smallest, user, frames: [frame] })))
    expect(restored.user.basedOn).toBe(restored.frames[0]?.user?.basedOn)
    expect(restored.user.basedOn).toEqual(basedOn)
  })

  test('secrets are separate, at any place', () => {
    const user: WorkflowUser = {
      ...smallest.user,
      attributes: Attributes.from({ apiToken: ['s3cret'], mail: ['m'] }),
      password: 's3cret',
    }
    const frames = [{ workflow: 'w', hash: 'h', place: '', next: 0, user }]
    const state = { ...smallest, user, frames, request: new Map([['newPassword', 's3cret']]) }
    const { data, secret } = saveRun(state)
    expect(JSON.stringify(data)).not.toContain('s3cret')
    expect(JSON.stringify(secret)?.match(/s3cret/g)?.length).toBe(5)
    expect(saveRun(smallest).secret).toBeUndefined()
  })

  test.each([
    ['a function', () => 1],
    ['an object of a class', new Map()],
    ['no number', Number.NaN],
    ['a key of JavaScript', JSON.parse('{"__proto__": 1}')],
  ])("%s in the request map can't be stored", (_what, value) => {
    const state = { ...smallest, request: new Map([['k', value]]) }
    expect(() => saveRun(state)).toThrow(expect.objectContaining({ code: 'WORKFLOW_FAILED' }))
  })

  test("circular data can't be stored", () => {
    const circle: unknown[] = []
    circle.push(circle)
    expect(() => saveRun({ ...smallest, request: new Map([['k', circle]]) })).toThrow('cannot be stored')
  })

  test('its size is limited', () => {
    const request = new Map([['k', 'x'.repeat(1_000_001)]])
    expect(() => checkSize(saveRun({ ...smallest, request }))).toThrow('at most 1000000 are stored')
    expect(() => checkSize(saveRun(smallest))).not.toThrow()
  })

  test('anything else is rejected with the same error', () => {
    const good = throughText(saveRun({ ...smallest, signal: { kind: 'time' } })).data
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(good)), fc.jsonValue(), (property, value) => {
        try {
          restoreRun(head, { data: { ...good, [property]: value } as JsonObject })
        } catch (error) {
          expect(error).toMatchObject({ code: 'WORKFLOW_FAILED' })
        }
      }),
    )
    expect(() => restoreRun(head, { data: { ...good, format: 2 } })).toThrow('its form is another')
  })

  test('can be moved past the next task', () => {
    const skipped = skipTask(saveRun({ ...smallest, signal: { kind: 'time' } }).data)
    expect(skipped).toMatchObject({ steps: 3, frames: [{ next: 3 }] })
    expect(skipped).not.toHaveProperty('signal')
    expect(skipTask(saveRun({ ...smallest, frames: [] }).data)).toBeUndefined()
  })
})
