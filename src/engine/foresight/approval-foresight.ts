import type { Approval } from '#domain/approval.ts'
import { type Actor, approvalRow } from '#engine/approvals/approval-audit.ts'
import type { RunProgress } from '#engine/workflow/run-progress.ts'
import type { SecretBox } from '#engine/workflow/sealed-secret.ts'
import { RunSealer, restoreStoredRun } from '#engine/workflow/stored-form.ts'
import type { AccountConflicts, Workflows } from '#engine/workflow/workflows.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { Logger } from '#kernel/logger.ts'
import type { ExistingAccount } from '#sdk/workflow/approvals.ts'
import type { Foreseen } from '#sdk/workflow/foreseen.ts'
import type { RunStore } from '#storage/runs/run-store.ts'

const busy = (reason: string): GatewayError =>
  new GatewayError('TOO_MANY_REQUESTS', reason, {
    publicText: 'Other approvals are being previewed. Try again in a few seconds.',
    retryAfter: 3,
  })

const nothingTold: Foreseen = { steps: [], whole: false }

export interface ApprovalForesightParts {
  readonly runs: Pick<RunStore, 'getWhole' | 'signal'>
  readonly secrets: SecretBox
  readonly workflows: () => Pick<Workflows, 'load' | 'foresee' | 'accountConflicts'>
  readonly log: Logger
  readonly clock: Clock
}

/** What follows when an approval is given, found by walking the run that waits for it on paper. */
export class ApprovalForesight {
  readonly #parts: ApprovalForesightParts
  /** A preview reads from targets, which have other work: two at once for a user, eight for all. */
  readonly #previews = new KeyedQueue({ width: 2, maxPerKey: 2, maxPending: 8, refuse: busy })

  constructor(parts: ApprovalForesightParts) {
    this.#parts = parts
  }

  /**
   * Undefined when the run does not wait any more. Whoever calls has checked that `by` may decide. Throws TOO_MANY_REQUESTS
   * and nothing else.
   */
  async of(approval: Approval, by: string): Promise<Foreseen | undefined> {
    const endTurn = await this.#previews.enter(by.toLowerCase())
    try {
      const workflows = this.#parts.workflows()
      const state = await this.#restore(approval, by)
      if (state === undefined) {
        endTurn()
        return undefined
      }
      await workflows.load(state)
      // Whoever asks slow targets has their turn until those answered, although the answer here does not wait for it.
      return await workflows.foresee(state, endTurn)
    } catch (err) {
      endTurn()
      this.#parts.log.warn('the preview of an approval failed', { approval: approval.id, err })
      return nothingTold
    }
  }

  /** Whether the account that the run is to create exists. Throws what the directory throws. */
  async existing(approval: Approval): Promise<ExistingAccount | undefined> {
    return (await this.#conflicts(approval))?.existing
  }

  /**
   * Where the account that the run is to create exists, lets the run continue, which ends it: the approval is closed, and
   * the run has the reason, which is returned.
   */
  async refuse(approval: Approval, actor: Actor): Promise<GatewayError | undefined> {
    const error = (await this.#conflicts(approval))?.error
    if (error === undefined) return undefined
    const { runs, clock } = this.#parts
    const row = approvalRow(approval, actor, clock(), `closed: ${error.code}`)
    await runs.signal(approval.run, { kind: 'time' }, { audit: [row] })
    return error
  }

  async #conflicts(approval: Approval): Promise<AccountConflicts | undefined> {
    const workflows = this.#parts.workflows()
    const state = await this.#restore(approval, '')
    if (state === undefined) return undefined
    await workflows.load(state)
    return await workflows.accountConflicts(state)
  }

  /** As if it had been approved just now. */
  async #restore({ id, run: runId }: Approval, by: string): Promise<RunProgress | undefined> {
    const { runs, secrets } = this.#parts
    const run = await runs.getWhole(runId)
    if (run?.state !== 'waiting') return undefined
    const state = await restoreStoredRun(run, new RunSealer(secrets, runId))
    state.signal = { kind: 'approval', approval: id, approved: true, by }
    state.approval = id
    return state
  }
}
