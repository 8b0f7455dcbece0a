import { describe, expect, test } from 'vitest'
import type { Approval } from '#domain/approval.ts'
import type { ClaimedRun } from '#domain/run.ts'
import { ApprovalForesight, type ApprovalForesightParts } from '#engine/foresight/approval-foresight.ts'
import type { RunProgress } from '#engine/workflow/run-progress.ts'
import { type SavedRun, saveRun } from '#engine/workflow/saved-run.ts'
import { SecretBox } from '#engine/workflow/sealed-secret.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Foreseen } from '#sdk/workflow/foreseen.ts'
import { recordingLogger } from '#testing/workflow-fixture.ts'

const approval = { id: 'a1', run: 'r1' } as Approval

const { data }: SavedRun = saveRun({
  id: 'r1',
  workflow: 'w',
  subject: 'ann',
  requestor: 'asker',
  who: {},
  user: { userID: 'ann', attributes: new Attributes(), groups: [], keepGroups: false },
  request: new Map(),
  frames: [],
  pins: new Map(),
  steps: 0,
})
const waiting = {
  id: 'r1',
  name: 'w',
  subject: 'ann',
  requestor: 'asker',
  who: {},
  state: 'waiting',
  data,
} as ClaimedRun

const noSignals = { signal: async () => false }

type Foresee = (state: RunProgress, onEnd: () => void) => Promise<Foreseen>

const atOnce: Foresee = async (_, onEnd) => {
  onEnd()
  return told
}

function foresight(parts: Partial<ApprovalForesightParts> = {}, foresee = atOnce) {
  const log = recordingLogger()
  const workflows = () => ({
    load: async () => {},
    foresee: (state: RunProgress, onEnd = () => {}) => foresee(state, onEnd),
    accountConflicts: async () => undefined,
  })
  const runs = { ...noSignals, getWhole: async () => waiting }
  return {
    log,
    foresight: new ApprovalForesight({
      runs,
      secrets: new SecretBox(async () => []),
      workflows,
      log,
      clock: () => new Date(0),
      ...parts,
    }),
  }
}

const told: Foreseen = { steps: [], whole: true }

test('the run goes on on paper as if the caller had approved', async () => {
  const seen: unknown[] = []
  const { foresight: one } = foresight({}, async ({ signal, approval: allowed }, onEnd) => {
    seen.push(signal, allowed)
    onEnd()
    return told
  })
  expect(await one.of(approval, 'boss')).toBe(told)
  expect(seen).toEqual([{ kind: 'approval', approval: 'a1', approved: true, by: 'boss' }, 'a1'])
})

test('nothing is foreseen of a run that does not wait', async () => {
  for (const run of [
    undefined,
    { ...waiting, state: 'running' as const },
    { ...waiting, state: 'completed' as const },
  ]) {
    const { foresight: one } = foresight({ runs: { ...noSignals, getWhole: async () => run } })
    expect(await one.of(approval, 'boss')).toBeUndefined()
  }
})

test('what fails is logged and shown as nothing', async () => {
  const { foresight: one, log } = foresight({
    runs: {
      ...noSignals,
      getWhole: async () => {
        throw new Error('no database')
      },
    },
  })
  expect(await one.of(approval, 'boss')).toEqual({ steps: [], whole: false })
  expect(log.lines).toMatchObject([{ level: 'warn', fields: { approval: 'a1' } }])
  const broken = foresight({ runs: { ...noSignals, getWhole: async () => ({ ...waiting, data: { format: 99 } }) } })
  expect(await broken.foresight.of(approval, 'boss')).toEqual({ steps: [], whole: false })
})

describe('turns', () => {
  const tooMany = { code: 'TOO_MANY_REQUESTS', status: 429, retryAfter: 3 }

  /** Foresight that is told at once and goes on until `end`. */
  function going() {
    const ends: (() => void)[] = []
    const { foresight: one } = foresight({}, async (_, onEnd) => {
      ends.push(onEnd)
      return told
    })
    return { one, end: () => ends.shift()?.() }
  }

  test('one approver has two at a time, until targets were left alone, and others have theirs', async () => {
    const { one, end } = going()
    expect([await one.of(approval, 'boss'), await one.of(approval, 'Boss')]).toEqual([told, told])
    await expect(one.of(approval, 'BOSS')).rejects.toMatchObject(tooMany)
    expect(await one.of(approval, 'chief')).toBe(told)
    end()
    expect(await one.of(approval, 'boss')).toBe(told)
    await expect(one.of(approval, 'boss')).rejects.toMatchObject(tooMany)
  })

  test('all together have eight at a time', async () => {
    const { one, end } = going()
    for (let i = 0; i < 8; i++) expect(await one.of(approval, `boss${i}`)).toBe(told)
    await expect(one.of(approval, 'late')).rejects.toMatchObject(tooMany)
    end()
    expect(await one.of(approval, 'late')).toBe(told)
  })

  test('one that fails, or of a run that does not wait, holds nobody up', async () => {
    const failing = foresight({}, async () => {
      throw new Error('no workflows')
    })
    const gone = foresight({ runs: { ...noSignals, getWhole: async () => undefined } })
    for (let i = 0; i < 5; i++) {
      expect(await failing.foresight.of(approval, 'boss')).toEqual({ steps: [], whole: false })
      expect(await gone.foresight.of(approval, 'boss')).toBeUndefined()
    }
  })
})
