import { expect, test } from 'vitest'
import { ApprovalForesight, type ApprovalForesightParts } from '#engine/foresight/approval-foresight.ts'
import type { RunState } from '#engine/workflow/run-state.ts'
import { type SavedRun, saveRun } from '#engine/workflow/saved-run.ts'
import { SecretBox } from '#engine/workflow/sealed-secret.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Approval } from '#storage/approval-store.ts'
import type { ClaimedRun } from '#storage/run-store.ts'
import { recordingLogger } from '#testing/workflow-fixture.ts'

const approval = { id: 'a1', run: 'r1' } as Approval

const { data }: SavedRun = saveRun({
  id: 'r1',
  workflow: 'w',
  subject: 'ann',
  requestor: 'asker',
  user: { userID: 'ann', attributes: new Attributes(), groups: [], keepGroups: false },
  request: new Map(),
  frames: [],
  pins: new Map(),
  steps: 0,
})
const waiting = { id: 'r1', name: 'w', subject: 'ann', requestor: 'asker', state: 'waiting', data } as ClaimedRun

function foresight(parts: Partial<ApprovalForesightParts> = {}, foresee = async (_: RunState) => told) {
  const log = recordingLogger()
  const workflows = () => ({ load: async () => {}, foresee })
  const runs = { getWhole: async () => waiting }
  return {
    log,
    foresight: new ApprovalForesight({ runs, secrets: new SecretBox(async () => []), workflows, log, ...parts }),
  }
}

const told = { steps: [], whole: true }

test('the run goes on on paper as if the caller had approved', async () => {
  const seen: unknown[] = []
  const { foresight: one } = foresight({}, async ({ signal, approval: allowed }) => {
    seen.push(signal, allowed)
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
    const { foresight: one } = foresight({ runs: { getWhole: async () => run } })
    expect(await one.of(approval, 'boss')).toBeUndefined()
  }
})

test('what fails is logged and shown as nothing', async () => {
  const { foresight: one, log } = foresight({
    runs: {
      getWhole: async () => {
        throw new Error('no database')
      },
    },
  })
  expect(await one.of(approval, 'boss')).toEqual({ steps: [], whole: false })
  expect(log.lines).toMatchObject([{ level: 'warn', fields: { approval: 'a1' } }])
  const broken = foresight({ runs: { getWhole: async () => ({ ...waiting, data: { format: 99 } }) } })
  expect(await broken.foresight.of(approval, 'boss')).toEqual({ steps: [], whole: false })
})

test('only some are looked at together, and afterwards others again', async () => {
  const held = Promise.withResolvers<typeof told>()
  const { foresight: one } = foresight({}, () => held.promise)
  const first = Array.from({ length: 8 }, () => one.of(approval, 'boss'))
  expect(await one.of(approval, 'boss')).toEqual({ steps: [], whole: false })
  held.resolve(told)
  expect(await Promise.all(first)).toEqual(Array.from({ length: 8 }, () => told))
  expect(await one.of(approval, 'boss')).toBe(told)
})
