import type { RunState } from '#engine/workflow/run-state.ts'
import type { SecretBox } from '#engine/workflow/sealed-secret.ts'
import { RunSealer } from '#engine/workflow/stored-form.ts'
import { restoreStoredRun } from '#engine/workflow/stored-run.ts'
import type { Workflows } from '#engine/workflow/workflows.ts'
import type { Logger } from '#kernel/logger.ts'
import { type TurnLimits, Turns } from '#kernel/turns.ts'
import type { Foreseen } from '#sdk/foreseen.ts'
import type { Approval } from '#storage/approval-store.ts'
import type { RunStore } from '#storage/run-store.ts'

/** Targets have more to do than to answer people who are curious. */
const turnLimits: TurnLimits = {
  all: 8,
  ofOne: 2,
  publicText: 'What other approvals would change is being found out. Try again in a moment.',
  retryAfter: 3,
}

const nothingTold: Foreseen = { steps: [], whole: false }

export interface ApprovalForesightParts {
  readonly runs: Pick<RunStore, 'getWhole'>
  readonly secrets: SecretBox
  readonly workflows: () => Pick<Workflows, 'load' | 'foresee'>
  readonly log: Logger
}

/** What follows when an approval is given, found by walking the run that waits for it on paper. */
export class ApprovalForesight {
  readonly #parts: ApprovalForesightParts
  readonly #turns = new Turns(turnLimits)

  constructor(parts: ApprovalForesightParts) {
    this.#parts = parts
  }

  /**
   * Undefined when the run does not wait any more. Whoever calls has checked that `by` may decide. Throws TOO_MANY_REQUESTS
   * and nothing else.
   */
  async of(approval: Approval, by: string): Promise<Foreseen | undefined> {
    const endTurn = this.#turns.take(by.toLowerCase())
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
      this.#parts.log.warn('what an approval would do cannot be foreseen', { approval: approval.id, err })
      return nothingTold
    }
  }

  /** As if it had been approved just now. */
  async #restore({ id, run: runId }: Approval, by: string): Promise<RunState | undefined> {
    const { runs, secrets } = this.#parts
    const run = await runs.getWhole(runId)
    if (run?.state !== 'waiting') return undefined
    const state = await restoreStoredRun(run, new RunSealer(secrets, runId))
    state.signal = { kind: 'approval', approval: id, approved: true, by }
    state.approval = id
    return state
  }
}
