import type { SecretBox } from '#engine/workflow/sealed-secret.ts'
import { RunSealer } from '#engine/workflow/stored-form.ts'
import { restoreStoredRun } from '#engine/workflow/stored-run.ts'
import type { Workflows } from '#engine/workflow/workflows.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Foreseen } from '#sdk/foreseen.ts'
import type { Approval } from '#storage/approval-store.ts'
import type { RunStore } from '#storage/run-store.ts'

/** So many at the same time; targets have more to do than to answer people who are curious. */
const maxAtOnce = 8

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
  #active = 0

  constructor(parts: ApprovalForesightParts) {
    this.#parts = parts
  }

  /** Undefined when the run does not wait any more. Whoever calls has checked that `by` may decide. Does not throw. */
  async of(approval: Approval, by: string): Promise<Foreseen | undefined> {
    if (this.#active >= maxAtOnce) return nothingTold
    this.#active++
    try {
      return await this.#foresee(approval, by)
    } catch (err) {
      this.#parts.log.warn('what an approval would do cannot be foreseen', { approval: approval.id, err })
      return nothingTold
    } finally {
      this.#active--
    }
  }

  async #foresee({ id, run: runId }: Approval, by: string): Promise<Foreseen | undefined> {
    const { runs, secrets } = this.#parts
    const run = await runs.getWhole(runId)
    if (run?.state !== 'waiting') return undefined
    const state = await restoreStoredRun(run, new RunSealer(secrets, runId))
    const workflows = this.#parts.workflows()
    await workflows.load(state)
    state.signal = { kind: 'approval', approval: id, approved: true, by }
    state.approval = id
    return await workflows.foresee(state)
  }
}
