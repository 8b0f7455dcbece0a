import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { SecretBox } from '#keys/secret-box.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import { fakeService } from '#testing/workflows/call-store.ts'
import { runHead } from '#testing/workflows/run-head.ts'
import { recordingLogger } from '#testing/workflows/workflow-fixture.ts'
import type { Approval } from '#workflows/record/approval.ts'
import type { StoredRun } from '#workflows/record/run.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import { ApprovalPreview, type ApprovalPreviewParts } from './previews.ts'
import { type SavedRun, saveRun } from './saved-run.ts'
import type { Workflows } from './workflows.ts'

const approval = { id: 'a1', run: { id: 'r1' } } as Approval

const { data }: SavedRun = saveRun({
  head: runHead({ id: 'r1' }),
  user: { userID: 'ann', attributes: new Attributes(), groups: [], keepGroups: false },
  request: new Map(),
  frames: [],
  pins: new Map(),
  steps: 0,
})
const waiting = {
  head: runHead({ id: 'r1' }),
  state: 'waiting',
  data,
} as StoredRun

/** Of this one run. */
const storeOf = (getWhole: RunStore['getWhole']) =>
  fakeService<RunStore>('stored runs', { getWhole, signal: async () => false })

type PreviewCall = (state: RunProgress, onEnd: () => void) => Promise<Preview>

const atOnce: PreviewCall = async (_, onEnd) => {
  onEnd()
  return shown
}

function approvalPreview(parts: Partial<ApprovalPreviewParts> = {}, preview = atOnce) {
  const log = recordingLogger()
  const workflows = () => fakeService<Workflows>('workflows', { load: async () => {} })
  const runs = storeOf(async () => waiting)
  return {
    log,
    preview: new ApprovalPreview(
      {
        runs,
        secrets: new SecretBox(async () => []),
        workflows,
        log,
        clock: () => new Date(0),
        ...parts,
      },
      (state, _, { onEnd = () => {} } = {}) => preview(state, onEnd),
    ),
  }
}

const shown: Preview = { steps: [], whole: true }

test('the preview continues the run as if the caller had approved', async () => {
  const seen: unknown[] = []
  const { preview } = approvalPreview({}, async ({ signal, approval: allowed }, onEnd) => {
    seen.push(signal, allowed)
    onEnd()
    return shown
  })
  expect(await preview.of(approval, 'boss')).toBe(shown)
  expect(seen).toEqual([{ kind: 'approval', approval: 'a1', approved: true, by: 'boss' }, 'a1'])
})

test('a run that does not wait has no preview', async () => {
  for (const run of [
    undefined,
    { ...waiting, state: 'running' as const },
    { ...waiting, state: 'completed' as const },
  ]) {
    const { preview } = approvalPreview({ runs: storeOf(async () => run) })
    expect(await preview.of(approval, 'boss')).toBeUndefined()
  }
})

test('a failed preview is logged and shown as empty', async () => {
  const { preview, log } = approvalPreview({
    runs: storeOf(async () => {
      throw new Error('no database')
    }),
  })
  expect(await preview.of(approval, 'boss')).toEqual({ steps: [], whole: false })
  expect(log.lines).toMatchObject([{ level: 'warn', fields: { approval: 'a1' } }])
  const broken = approvalPreview({
    runs: storeOf(async () => ({ ...waiting, data: { format: 99 } })),
  })
  expect(await broken.preview.of(approval, 'boss')).toEqual({ steps: [], whole: false })
})

describe('limits', () => {
  const tooMany = { code: 'TOO_MANY_REQUESTS', status: 429, retryAfter: 3 }

  /** Previews that answer at once and occupy their slot until `end`. */
  function going() {
    const ends: (() => void)[] = []
    const { preview } = approvalPreview({}, async (_, onEnd) => {
      ends.push(onEnd)
      return shown
    })
    return { preview, end: () => ends.shift()?.() }
  }

  test('an approver has two previews at a time until their targets answer; other approvers are not affected', async () => {
    const { preview, end } = going()
    expect([await preview.of(approval, 'boss'), await preview.of(approval, 'Boss')]).toEqual([shown, shown])
    await expect(preview.of(approval, 'BOSS')).rejects.toMatchObject(tooMany)
    expect(await preview.of(approval, 'chief')).toBe(shown)
    end()
    expect(await preview.of(approval, 'boss')).toBe(shown)
    await expect(preview.of(approval, 'boss')).rejects.toMatchObject(tooMany)
  })

  test('all approvers together have eight previews at a time', async () => {
    const { preview, end } = going()
    for (let i = 0; i < 8; i++) expect(await preview.of(approval, `boss${i}`)).toBe(shown)
    await expect(preview.of(approval, 'late')).rejects.toMatchObject(tooMany)
    end()
    expect(await preview.of(approval, 'late')).toBe(shown)
  })

  test('a failed preview, and one of a run that does not wait, free their slot', async () => {
    const failing = approvalPreview({}, async () => {
      throw new Error('no workflows')
    })
    const gone = approvalPreview({ runs: storeOf(async () => undefined) })
    for (let i = 0; i < 5; i++) {
      expect(await failing.preview.of(approval, 'boss')).toEqual({ steps: [], whole: false })
      expect(await gone.preview.of(approval, 'boss')).toBeUndefined()
    }
  })
})
