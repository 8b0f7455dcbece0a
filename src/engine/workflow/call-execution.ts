import type { RunClaim, StepRecord } from '#domain/run.ts'
import type { AuditPlace, AuditTrail } from '#engine/provisioning/audit-trail.ts'
import { ClaimKeeper } from '#engine/workflow/claim-keeper.ts'
import { type Intent, intentsOf, isRefusedCall, unreported } from '#engine/workflow/intents.ts'
import { CollectedEffects, type PasswordNotes, runEffects, type StepRequests } from '#engine/workflow/run-effects.ts'
import { failureOf, logFailure, messageOf, taskOf } from '#engine/workflow/run-failure.ts'
import type { RunProgress } from '#engine/workflow/run-progress.ts'
import { prepareWait, type Waiting } from '#engine/workflow/run-timers.ts'
import { auditTrail, stepContext } from '#engine/workflow/step-context.ts'
import { StepLog } from '#engine/workflow/step-log.ts'
import { endedCallForm, headOf, lostCallForm, newRunOf } from '#engine/workflow/stored-form.ts'
import { type DefinitionOf, type Position, type WaitOutcome, walk } from '#engine/workflow/walk.ts'
import type { ApprovalOpener, WorkflowServices } from '#engine/workflow/workflow-services.ts'
import { formerIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow/workflow.ts'
import type { TaskOutcome } from '#sdk/workflow/workflow-task.ts'
import type { IdempotentAnswer } from '#storage/idempotency-store.ts'
import type { FirstState, NewRun, NextState, RunEffects, StepCommit } from '#storage/runs/run-commit.ts'

/** How long the rest of the run may take after a password was written, before its process counts as dead. */
const leasesOfPassword = 4

export interface CallParts {
  readonly services: WorkflowServices
  readonly definitions: DefinitionOf
  readonly approvals: ApprovalOpener
  prepare(call: WorkflowCall): Promise<NewRun>
  /** Lets a worker continue the run after it is stored. */
  saveDefinitions(): Promise<void>
  readonly deadline: Date | undefined
  /** The target's changes and their audit are one commit. */
  auditsWithin(target: string): boolean
  /** The run can be read after it has ended. */
  readonly kept: boolean
  /** What to store of the response. */
  answer(result: WorkflowResult): IdempotentAnswer | undefined
}

/**
 * Executes a run within its call. One that does not wait is never stored: its changes are in the audit, and the
 * effects of its steps are committed in one transaction at its end. One that has to wait is stored at that point.
 */
export class CallExecution {
  readonly #state: RunProgress
  readonly #parts: CallParts
  readonly #trail: AuditTrail
  readonly #record: CallRecord
  readonly #requests: StepRequests[] = []
  readonly #log = new StepLog()

  constructor(state: RunProgress, parts: CallParts) {
    this.#state = state
    this.#parts = parts
    const { services, kept, deadline } = parts
    this.#trail = auditTrail(state, services.audit)
    this.#record = new CallRecord(state, { services, trail: this.#trail, kept, deadline })
  }

  async run(): Promise<WorkflowResult> {
    const { services } = this.#parts
    const { id, workflow } = this.#state
    let wait: WaitOutcome | undefined
    let failure: GatewayError | undefined
    try {
      wait = await walk(this.#state, this.#parts.definitions, (position) => this.#runTask(position))
      if (wait !== undefined) await this.#store(wait)
    } catch (error) {
      failure = failureOf(this.#state, error)
      logFailure(services.log, this.#state, failure)
    }
    this.#log.report(services.observer, workflow)
    const result: WorkflowResult = {
      id,
      status: wait === undefined ? 'completed' : 'waiting',
      changes: this.#trail.count,
    }
    if (wait === undefined || failure !== undefined) failure = await this.#end(result, failure)
    if (failure !== undefined) throw failure
    return result
  }

  readonly #intend = (place: AuditPlace, changes: readonly TargetChange[]): Promise<void> =>
    this.#record.intend(place, changes)

  /**
   * No process continues this run if this one dies, so the effects of a password change are recorded before the
   * write.
   */
  readonly #passwords: PasswordNotes = {
    begin: ({ logins, owners }) => {
      const { passwordChanges, leaseMillis } = this.#parts.services
      const { id, workflow, requestor, session } = this.#state
      const [login = ''] = logins
      const data = {
        login,
        logins: [...logins],
        owners: [...owners],
        run: { id, name: workflow },
        requestor,
        ...(session === undefined ? {} : { session }),
      }
      const owner = owners[0] ?? formerIdentity(login)
      return passwordChanges.begin({ id: newId(), form: workflow, owner, data }, leaseMillis * leasesOfPassword)
    },
    refused: async (claim) => {
      const { passwordChanges, log } = this.#parts.services
      // Its outcome is unknown then, and sessions end.
      const unsettled = (err: unknown): void => log.warn('a refused password was not settled', { err })
      await passwordChanges.release(claim, { audit: [] }).catch(unsettled)
    },
    written: () => this.#parts.services.crash('after-target-call'),
  }

  #runTask(position: Position): TaskOutcome | Promise<TaskOutcome> {
    const started = Date.now()
    const number = this.#state.steps
    const effects = new CollectedEffects(this.#passwords)
    const { services } = this.#parts
    const { log, clock, audit } = services
    const note = (outcome: string): void => {
      this.#log.add({ number, position, started, ended: Date.now(), outcome })
    }
    const ended = (outcome: TaskOutcome): TaskOutcome => {
      note(outcome.kind)
      this.#record.learned()
      if (!effects.isEmpty) this.#requests.push({ step: number, effects })
      return outcome
    }
    const failed = (error: unknown): never => {
      note('failed')
      throw error
    }
    try {
      const context = stepContext(this.#state, position, {
        log,
        clock,
        audit,
        trail: this.#trail,
        effects,
        auditsWithin: this.#parts.auditsWithin,
        intend: this.#intend,
      })
      const outcome = position.step.task.run(context)
      return 'kind' in outcome ? ended(outcome) : outcome.then(ended, failed)
    } catch (error) {
      return failed(error)
    }
  }

  /** The run, its steps, its audit and what it waits for are one transaction. */
  async #store(wait: WaitOutcome): Promise<void> {
    const { services, deadline, prepare, saveDefinitions } = this.#parts
    const { id } = this.#state
    const { approval, timers, undecidable } = await this.#waiting(wait)
    const run = await newRunOf(this.#state, services.secrets, deadline)
    await saveDefinitions()
    const answer = this.#parts.answer({ id, status: 'waiting', changes: this.#trail.count })
    const effects: RunEffects = {
      ...(await runEffects(this.#state, this.#requests, prepare)),
      steps: this.#log.take(1),
      audit: this.#trail.rows,
      timers,
      ...(answer === undefined ? {} : { answer }),
    }
    const touched = this.#trail.count > 0
    services.crash('before-commit')
    if (this.#record.claim !== undefined) {
      const next: NextState = undecidable
        ? { state: 'ready', due: { inMillis: 0 }, attempt: 0 }
        : { state: 'waiting', ...(approval === undefined ? {} : { approval }) }
      await this.#record.leave(next, { ...run, touched }, effects)
    } else {
      const state: FirstState = undecidable ? { state: 'ready', due: { inMillis: 0 } } : { state: 'waiting' }
      await services.runs.start(
        { ...run, state, touched },
        { effects, ...(approval === undefined ? {} : { approval }) },
      )
    }
    services.crash('after-commit')
  }

  /** The caller can't fix an approval without approvers, so the run is stored anyway; a worker turns it into an incident. */
  async #waiting(wait: WaitOutcome): Promise<Waiting & { readonly undecidable: boolean }> {
    const { approvals, deadline } = this.#parts
    try {
      return { ...(await prepareWait(this.#state, wait, approvals, deadline)), undecidable: false }
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'NO_APPROVERS') throw error
      return { timers: [], undecidable: true }
    }
  }

  /** Also for a failed run: the audit has its earlier changes, and access that it granted expires. */
  async #end(result: WorkflowResult, failed: GatewayError | undefined): Promise<GatewayError | undefined> {
    const { prepare } = this.#parts
    const audit = this.#trail.rows
    let failure = failed
    let effects: RunEffects = {}
    try {
      if (this.#requests.length > 0) effects = await runEffects(this.#state, this.#requests, prepare)
    } catch (error) {
      failure ??= failureOf(this.#state, error)
    }
    const answer = failure === undefined ? this.#parts.answer(result) : undefined
    try {
      const all = answer === undefined ? { ...effects, audit } : { ...effects, audit, answer }
      await this.#record.end(failure, all, () => this.#log.take(1))
      return failure
    } catch (error) {
      return this.#unaudited(error, failure)
    }
  }

  #unaudited(error: unknown, failure: GatewayError | undefined): GatewayError {
    const { id, workflow } = this.#state
    this.#parts.services.log.error('audit could not be written', { workflowId: id, workflow, err: error })
    // A retry is safe, since provisioning writes only what differs; the store's error says when.
    const unreachable = error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE' ? error : undefined
    const text = `the audit of workflow "${workflow}" could not be written`
    return new GatewayError(unreachable?.code ?? 'WORKFLOW_FAILED', text, {
      cause: failure === undefined ? error : new AggregateError([failure, error]),
      ...(unreachable?.retryAfter === undefined ? {} : { retryAfter: unreachable.retryAfter }),
    })
  }
}

/** The stored form of a response. */
export const resultToJson = ({ id, status, changes }: WorkflowResult): JsonObject => ({ id, status, changes })

interface CallRecordParts {
  readonly services: WorkflowServices
  readonly trail: AuditTrail
  /** The run can be read after it has ended. */
  readonly kept: boolean
  readonly deadline: Date | undefined
}

/**
 * The stored part of a run that is executed within its call. Most runs are never stored. A run that is about to
 * change a target whose audit is not the same commit is stored with its planned changes: if the process dies, the
 * worker that claims the run finds out whether they were made, and ends it, since no caller waits for the response.
 */
class CallRecord {
  readonly #state: RunProgress
  readonly #parts: CallRecordParts
  #claim: RunClaim | undefined
  #keeper: ClaimKeeper | undefined
  /** Planned changes of the current task without a known outcome. */
  #open: readonly Intent[] = []

  constructor(state: RunProgress, parts: CallRecordParts) {
    this.#state = state
    this.#parts = parts
  }

  /** The claim on the stored run; undefined while it is not stored. */
  get claim(): RunClaim | undefined {
    return this.#claim
  }

  /** Durable before the target is called, together with the audit of earlier changes. */
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

  /** The current task has ended and reported all its changes. */
  learned(): void {
    this.#open = []
  }

  /** The run leaves its call, to wait or to be executed by a worker. */
  async leave(next: NextState, { data, secret, touched }: NewRun, effects: RunEffects): Promise<void> {
    this.#keeper?.end()
    if (this.#claim === undefined) throw new Error('the run is not stored')
    const form = { data, touched: touched ?? true, ...(secret === undefined ? {} : { secret }) }
    await this.#parts.services.runs.commit({ run: this.#claim, next, effects, ...form })
  }

  /** All effects of the run are one transaction, with its end if the run can be read later. */
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
    const open = failure === undefined || isRefusedCall(failure) ? [] : unreported(this.#open, this.#parts.trail.rows)
    const failed = endState(this.#state, failure)
    try {
      // It is unknown whether the target made the change, so a worker finds out, as after a crash.
      if (failed.state === 'failed' && open.length > 0) {
        const later = { state: 'ready', due: { inMillis: 0 }, attempt: 0 } as const
        await this.#goOn(later, lostCallForm(this.#state, open, failed.incident), { ...effects, steps: steps() })
      } else if (kept) await this.#goOn(failed, endedCallForm, { ...effects, steps: steps() })
      else await services.runs.record({ ...effects, forgets: run })
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'VERSION_MISMATCH') throw error
      // Another worker counted this process as dead. Add only the entries that it has not written.
      const { rows } = await services.audit.list({ workflowId: run.id, limit: 500 })
      await services.runs.record({ ...effects, audit: unreported(effects.audit ?? [], rows) })
    }
  }

  async #goOn(next: NextState, data: JsonObject, effects: RunEffects): Promise<void> {
    if (this.#claim === undefined) return
    const step: StepCommit = { run: this.#claim, next, data, touched: true, effects }
    const state = await this.#parts.services.runs.commit(step)
    // The run was cancelled before the next change.
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
