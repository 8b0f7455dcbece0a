import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { Logger } from '#kernel/logger.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import type { ExistingAccount } from '#workflows/approvals/approval-access.ts'
import { type Actor, approvalRow } from '#workflows/approvals/approval-audit.ts'
import type { Approval } from '#workflows/record/approval.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import { RunSealer, restoreStoredRun } from './saved-run.ts'
import type { AccountConflicts, Workflows } from './workflows.ts'

const busy = (reason: string): GatewayError =>
  new GatewayError('TOO_MANY_REQUESTS', reason, {
    publicText: 'Other approvals are being previewed. Try again in a few seconds.',
    retryAfter: 3,
  })

const failedPreview: Preview = { steps: [], whole: false }

export interface ApprovalPreviewParts {
  readonly runs: Pick<RunStore, 'getWhole' | 'signal'>
  readonly secrets: SecretBox
  readonly workflows: () => Pick<Workflows, 'load' | 'preview' | 'accountConflicts'>
  readonly log: Logger
  readonly clock: Clock
}

/** Previews what follows an approval, by walking through the run that waits for it. */
export class ApprovalPreview {
  readonly #parts: ApprovalPreviewParts
  /** A preview reads from targets, which have other work: two at once for a user, eight for all. */
  readonly #previews = new KeyedQueue({ width: 2, maxPerKey: 2, maxPending: 8, refuse: busy })

  constructor(parts: ApprovalPreviewParts) {
    this.#parts = parts
  }

  /**
   * Undefined if the run no longer waits. The caller has checked that `by` may decide. Throws TOO_MANY_REQUESTS and
   * nothing else.
   */
  async of(approval: Approval, by: string): Promise<Preview | undefined> {
    const leave = await this.#previews.enter(by.toLowerCase())
    try {
      const workflows = this.#parts.workflows()
      const state = await this.#restore(approval, by)
      if (state === undefined) {
        leave()
        return undefined
      }
      await workflows.load(state)
      // The slot is occupied until slow targets have answered, although the result does not wait for them.
      return await workflows.preview(state, { onEnd: leave })
    } catch (err) {
      leave()
      this.#parts.log.warn('the preview of an approval failed', { approval: approval.id, err })
      return failedPreview
    }
  }

  /** Whether the account that the run should create exists. Throws errors of the directory. */
  async existing(approval: Approval): Promise<ExistingAccount | undefined> {
    return (await this.#conflicts(approval))?.existing
  }

  /**
   * If the account that the run should create exists, wakes the run, which then fails: the approval is closed, and
   * the reason is returned.
   */
  async refuse(approval: Approval, actor: Actor): Promise<GatewayError | undefined> {
    const error = (await this.#conflicts(approval))?.error
    if (error === undefined) return undefined
    const { runs, clock } = this.#parts
    const row = approvalRow(approval, actor, clock(), `closed: ${error.code}`)
    await runs.signal(approval.run.id, { kind: 'time' }, { audit: [row] })
    return error
  }

  async #conflicts(approval: Approval): Promise<AccountConflicts | undefined> {
    const workflows = this.#parts.workflows()
    const state = await this.#restore(approval, '')
    if (state === undefined) return undefined
    await workflows.load(state)
    return await workflows.accountConflicts(state)
  }

  /** The run as if `by` had approved it just now. */
  async #restore({ id, run: { id: runId } }: Approval, by: string): Promise<RunProgress | undefined> {
    const { runs, secrets } = this.#parts
    const run = await runs.getWhole(runId)
    if (run?.state !== 'waiting') return undefined
    const state = await restoreStoredRun(run, new RunSealer(secrets, runId))
    state.signal = { kind: 'approval', approval: id, approved: true, by }
    state.approval = id
    return state
  }
}
