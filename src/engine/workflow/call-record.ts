import type { RunClaim, StepRecord } from '#domain/run.ts'
import type { AuditPlace, AuditTrail } from '#engine/provisioning/audit-trail.ts'
import { ClaimKeeper } from '#engine/workflow/claim-keeper.ts'
import { type Intent, intentsOf, isRefusedCall, untold } from '#engine/workflow/intents.ts'
import { messageOf, taskOf } from '#engine/workflow/run-failure.ts'
import type { RunProgress } from '#engine/workflow/run-progress.ts'
import { headOf } from '#engine/workflow/stored-form.ts'
import { endedCallForm, lostCallForm } from '#engine/workflow/within-call-form.ts'
import type { WorkflowServices } from '#engine/workflow/workflow-services.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import type { NewRun, NextState, RunEffects, StepCommit } from '#storage/runs/run-commit.ts'

export interface CallRecordParts {
  readonly services: WorkflowServices
  readonly trail: AuditTrail
  /** The run is to be found when it has ended. */
  readonly kept: boolean
  readonly deadline: Date | undefined
}

/**
 * What is stored of a run that is executed within its call. Most are never stored; one that is about to change a target
 * whose audit is not the same commit is, with what it is about to change: when the process dies, whoever claims the run
 * finds out whether that happened, and goes no further, since nobody waits for the answer any more.
 */
export class CallRecord {
  readonly #state: RunProgress
  readonly #parts: CallRecordParts
  #claim: RunClaim | undefined
  #keeper: ClaimKeeper | undefined
  /** What the task under way has asked of a target, and did not learn of yet. */
  #open: readonly Intent[] = []

  constructor(state: RunProgress, parts: CallRecordParts) {
    this.#state = state
    this.#parts = parts
  }

  /** The right to the stored run; undefined while it is not stored. */
  get claim(): RunClaim | undefined {
    return this.#claim
  }

  /** Durable before the target is called, along with the audit of what was done before. */
  async intend(place: AuditPlace, changes: readonly TargetChange[]): Promise<void> {
    if (changes.length === 0) return
    const { services, trail } = this.#parts
    const { runs, leaseMillis } = services
    const audit = [...trail.rows]
    const intents = intentsOf(trail, place, changes)
    const data = lostCallForm(this.#state, intents)
    if (this.#claim === undefined) {
      const run: NewRun = {
        ...headOf(this.#state, this.#parts.deadline),
        data,
        state: { state: 'running', leaseMillis },
        touched: true,
      }
      await runs.start(run, { effects: { audit } })
      this.#claim = { id: this.#state.id, fence: 1 }
      this.#keeper = new ClaimKeeper(runs, this.#claim, { leaseMillis, stepMillis: leaseMillis }, services.log)
    } else {
      await this.#goOn({ state: 'running', leaseMillis }, data, { audit })
    }
    trail.rows.splice(0, audit.length)
    this.#open = intents
  }

  /** The task under way has ended, and told all that it changed. */
  learned(): void {
    this.#open = []
  }

  /** The run leaves its call, to wait or to be executed by others. */
  async leave(next: NextState, { data, secret, touched }: NewRun, effects: RunEffects): Promise<void> {
    this.#keeper?.end()
    if (this.#claim === undefined) throw new Error('the run is not stored')
    const form = { data, touched: touched ?? true, ...(secret === undefined ? {} : { secret }) }
    await this.#parts.services.runs.commit({ run: this.#claim, next, effects, ...form })
  }

  /** Everything that the run leads to is one transaction, with its end where that is to be found. */
  async end(failure: GatewayError | undefined, effects: RunEffects, steps: () => StepRecord[]): Promise<void> {
    this.#keeper?.end()
    const { services, kept, trail } = this.#parts
    const { audit = [], ...others } = effects
    if (this.#claim !== undefined) return await this.#endStored(failure, effects, steps)
    if (kept) {
      const state = endState(this.#state, failure)
      const run: NewRun = {
        ...headOf(this.#state, this.#parts.deadline),
        data: endedCallForm,
        state,
        touched: trail.count > 0,
      }
      await services.runs.start(run, { effects: { ...effects, steps: steps() } })
    } else if (Object.keys(others).length > 0) await services.runs.record(effects)
    else if (audit.length > 0) await services.audit.append(audit)
  }

  async #endStored(failure: GatewayError | undefined, effects: RunEffects, steps: () => StepRecord[]): Promise<void> {
    const { services, kept } = this.#parts
    const run = this.#claim
    if (run === undefined) return
    const open = failure === undefined || isRefusedCall(failure) ? [] : untold(this.#open, this.#parts.trail.rows)
    const failed = endState(this.#state, failure)
    try {
      // Nobody has learned whether the target did it: that is found out as if the process had died.
      if (failed.state === 'failed' && open.length > 0) {
        const later = { state: 'ready', due: { inMillis: 0 }, attempt: 0 } as const
        await this.#goOn(later, lostCallForm(this.#state, open, failed.incident), { ...effects, steps: steps() })
      } else if (kept) await this.#goOn(failed, endedCallForm, { ...effects, steps: steps() })
      else await services.runs.record({ ...effects, forgets: run })
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'VERSION_MISMATCH') throw error
      // Somebody took this process for dead. What it learned since then is told; what was found meanwhile is there.
      const { rows } = await services.audit.list({ workflowId: run.id, limit: 500 })
      await services.runs.record({ ...effects, audit: untold(effects.audit ?? [], rows) })
    }
  }

  async #goOn(next: NextState, data: JsonObject, effects: RunEffects): Promise<void> {
    if (this.#claim === undefined) return
    const step: StepCommit = { run: this.#claim, next, data, touched: true, effects }
    const state = await this.#parts.services.runs.commit(step)
    // Somebody asked for its end; nothing was changed yet by what comes now.
    if (next.state === 'running' && state !== 'running') {
      throw new GatewayError('CONFLICT', `the run ${this.#claim.id} was cancelled`, {
        publicText: 'The run was cancelled.',
      })
    }
  }
}

function endState(state: RunProgress, failure: GatewayError | undefined): { state: 'completed' } | FailedState {
  if (failure === undefined) return { state: 'completed' }
  const { code } = failure
  return { state: 'failed', incident: { task: taskOf(state), code, message: messageOf(failure).slice(0, 2_000) } }
}

type FailedState = Extract<NextState, { state: 'incident' | 'failed' }> & { readonly state: 'failed' }
