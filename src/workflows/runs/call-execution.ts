import { loginIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow/workflow.ts'
import { type Incident, incidentOf, type RunClaim, type RunState } from '#workflows/record/run.ts'
import { UnfinishedRun } from '#workflows/record/run-requests.ts'
import {
  type ExecutedSteps,
  executeSteps,
  failureOf,
  logFailure,
  type RunKeeper,
  type StepParts,
  type StepPlan,
  type Waiting,
} from '#workflows/steps/execute-steps.ts'
import { type PlannedChange, unreported } from '#workflows/steps/planned-changes.ts'
import { type PasswordNotes, type RunMailing, runEffects } from '#workflows/steps/run-effects.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'
import { taskOf } from '#workflows/steps/walk.ts'
import type { WorkflowServices } from '#workflows/steps/workflow-services.ts'
import type { IdempotentAnswer } from '#workflows/store/idempotency-store.ts'
import type { NewRun, NextState, RunEffects, StoredState } from '#workflows/store/run-commit.ts'
import { ClaimKeeper } from './claim-keeper.ts'
import { retryDelay } from './retry-policy.ts'
import {
  endedCallForm,
  lostCallForm,
  newRunOf,
  RunSealer,
  type SavedRun,
  saveRun,
  withoutVersions,
  withPlannedChanges,
} from './saved-run.ts'

/** How long the rest of the run may take after a password was written, before its process counts as dead. */
const leasesOfPassword = 4

const readyNow = { state: 'ready', due: { inMillis: 0 }, attempt: 0 } as const

/** Of every run that is executed within its call. */
export interface CallParts {
  readonly services: WorkflowServices
  /** Lets a worker continue the run after it is stored. */
  saveDefinitions(): Promise<void>
  /** The run can be read after it has ended. */
  readonly kept: boolean
  /** What to store of the response. */
  answer(result: WorkflowResult): IdempotentAnswer | undefined
}

interface ExecutionParts extends CallParts, StepParts {
  maySkip(data: JsonObject): Promise<boolean | undefined>
  prepare(call: WorkflowCall): Promise<NewRun>
  /** Pages of the portal, for mails. */
  readonly mailing: RunMailing
}

/**
 * Executes a run within its call. Most such runs are never stored: their changes are in the audit, and the effects
 * of all steps are one transaction at the end. A run that has to wait is stored at that point. A run that is about
 * to change a target whose audit is not the same commit is stored with its planned changes: if the process dies,
 * the worker that claims the run finds out whether they were made, and ends it, since no caller waits for the
 * response. A run that can be read later is left to a worker, or to an administrator, if it fails after it has changed
 * something, or may have, or if its process dies.
 */
export class CallExecution implements RunKeeper {
  readonly #state: RunProgress
  readonly #parts: ExecutionParts
  /** The claim on the stored run. */
  #claim: RunClaim | undefined
  #keeper: ClaimKeeper | undefined
  /** The latest planned changes. */
  #planned: readonly PlannedChange[] = []
  /** Before the step that is being executed, if the run can be continued from there. */
  #saved: SavedRun | undefined
  /** The run has to wait for an approval without approvers. */
  #undecidable = false

  constructor(state: RunProgress, parts: ExecutionParts) {
    this.#state = state
    this.#parts = parts
  }

  async run(): Promise<WorkflowResult> {
    const { services } = this.#parts
    const { id, workflow } = this.#state.head
    this.keep(this.#state)
    const executed = await executeSteps(this.#state, this.#parts, this)
    const { end, trail, log } = executed
    const waits = end.kind === 'wait'
    const result: WorkflowResult = {
      id,
      status: waits ? 'waiting' : 'completed',
      changes: trail.count,
      written: trail.written,
    }
    let failure: GatewayError | undefined
    try {
      if (end.kind === 'failed') throw end.error
      if (waits) await this.#store(end.waiting, executed, result)
    } catch (error) {
      failure = failureOf(this.#state, error)
      logFailure(services.log, this.#state, failure)
    }
    log.report(services.observer, workflow)
    if (!waits || failure !== undefined) failure = await this.#end(executed, result, failure)
    if (failure !== undefined) throw failure
    return result
  }

  keep(state: RunProgress): void {
    if (!this.#parts.kept) return
    try {
      this.#saved = saveRun(state)
    } catch {
      this.#saved = undefined
    }
  }

  commitsAfter(): boolean {
    return false
  }

  /** Stored together with the audit of earlier changes. */
  async planChanges({ latest, earlier, trail }: StepPlan): Promise<void> {
    const { services, saveDefinitions } = this.#parts
    const { runs, leaseMillis, log } = services
    const audit = [...trail.rows]
    const form =
      this.#saved === undefined
        ? { data: lostCallForm(this.#state, latest) }
        : await this.#form(withPlannedChanges(this.#saved, [...earlier, ...latest]))
    const next = { state: 'running', leaseMillis } as const
    if (this.#claim === undefined) {
      if (this.#saved !== undefined) await saveDefinitions()
      const { head } = this.#state
      await runs.start({ head, ...form, state: next, touched: true }, { effects: { audit } })
      this.#claim = { id: head.id, fence: 1 }
      this.#keeper = new ClaimKeeper(runs, this.#claim, { leaseMillis, stepMillis: leaseMillis }, log)
    } else {
      await this.#commit(this.#claim, next, form, { audit })
    }
    trail.rows.splice(0, audit.length)
    this.#planned = latest
  }

  /** Of a run that is executed within its call, and that a worker can continue if the call is lost. */
  async #form(saved: SavedRun): Promise<StoredState> {
    const { secrets } = this.#parts.services
    const form = await new RunSealer(secrets, this.#state.head.id).form(saved)
    return { ...form, data: { ...form.data, ...endedCallForm } }
  }

  /** The caller can't fix it, so the run is stored anyway; a worker turns it into an incident. */
  allowUndecidable(): void {
    this.#undecidable = true
  }

  /**
   * No process continues this run if this one dies, so the effects of a password change are recorded before the
   * write.
   */
  readonly passwords: PasswordNotes = {
    begin: ({ logins, owners }) => {
      const { passwordChanges, leaseMillis } = this.#parts.services
      const { id, workflow, requester } = this.#state.head
      const { session } = this.#state
      const [login = ''] = logins
      const data = {
        login,
        logins: [...logins],
        owners: [...owners],
        run: { id, name: workflow },
        requestor: requester,
        ...(session === undefined ? {} : { session }),
      }
      const owner = owners[0] ?? loginIdentity(login)
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

  /** The run, its steps, its audit and what it waits for are one transaction. */
  async #store({ approval, timers }: Waiting, executed: ExecutedSteps, result: WorkflowResult): Promise<void> {
    const { services, prepare, saveDefinitions, mailing } = this.#parts
    const { trail, requests, log } = executed
    const run = await newRunOf(this.#state, services.secrets)
    await saveDefinitions()
    const answer = this.#parts.answer(result)
    const effects: RunEffects = {
      ...(await runEffects(this.#state, requests, prepare, mailing)),
      steps: log.take(1),
      audit: trail.rows,
      timers,
      ...(answer && { answer }),
    }
    const touched = trail.count > 0
    const waiting = { state: 'waiting', ...(approval && { approval }) } as const
    services.crash('before-commit')
    if (this.#claim !== undefined) {
      this.#keeper?.end()
      await this.#commit(this.#claim, this.#undecidable ? readyNow : waiting, { ...run, touched }, effects)
    } else {
      const state = this.#undecidable ? readyNow : ({ state: 'waiting' } as const)
      await services.runs.start({ ...run, state, touched }, { effects, ...(approval && { approval }) })
    }
    services.crash('after-commit')
  }

  /** Also for a failed run: the audit has its earlier changes, and access that it granted expires. */
  async #end(
    executed: ExecutedSteps,
    result: WorkflowResult,
    failed: GatewayError | undefined,
  ): Promise<GatewayError | undefined> {
    this.#keeper?.end()
    const { trail, requests } = executed
    let failure = failed
    let effects: RunEffects = {}
    try {
      const { prepare, kept, mailing } = this.#parts
      effects = await runEffects(this.#state, requests, prepare, kept ? mailing : { choices: mailing.choices })
    } catch (error) {
      failure ??= failureOf(this.#state, error)
    }
    const answer = failure === undefined ? this.#parts.answer(result) : undefined
    const all = { ...effects, audit: trail.rows, ...(answer && { answer }) }
    try {
      const unfinished = failure && (await this.#leave(executed, failure, all))
      if (unfinished !== undefined) return unfinished
      if (this.#claim === undefined) await this.#endUnstored(executed, failure, all)
      else await this.#endStored(this.#claim, executed, failure, all)
      return failure
    } catch (error) {
      return this.#unaudited(error, failure)
    }
  }

  /**
   * Stores a run that has changed something, or may have, so that it continues from the failed step, and returns the answer.
   * Undefined for others.
   */
  async #leave(
    { end, open, trail, log }: ExecutedSteps,
    failure: GatewayError,
    effects: RunEffects,
  ): Promise<GatewayError | undefined> {
    if (this.#saved === undefined || end.kind !== 'failed' || trail.count + open.length === 0) return undefined
    const { services, saveDefinitions } = this.#parts
    const { runs, secrets, leaseMillis } = services
    const { head } = this.#state
    const { id } = head
    const isUnknown = open.length > 0
    const saved = isUnknown ? withPlannedChanges(this.#saved, open) : withoutVersions(this.#saved)
    const form = { ...(await new RunSealer(secrets, id).form(saved)), touched: true }
    const { task, target } = end
    const delay = retryDelay(failure, 1)
    const next: NextState =
      delay === undefined
        ? {
            state: 'incident',
            incident: { ...incidentOf(failure, task, target), ...(await this.#skipping(form.data)) },
          }
        : { state: 'ready', due: { inMillis: delay }, attempt: 1 }
    await saveDefinitions()
    if (this.#claim === undefined) {
      await runs.start({ head, ...form, state: { state: 'running', leaseMillis } })
      this.#claim = { id, fence: 1 }
    }
    try {
      const state = await this.#commit(this.#claim, next, form, { ...effects, steps: log.take(1) })
      if (state !== next.state) return cancelled(id)
    } catch (error) {
      // Another worker counted this process as dead.
      if (error instanceof GatewayError && error.code === 'VERSION_MISMATCH') return undefined
      throw error
    }
    const isRetried = delay !== undefined
    if (next.state === 'incident') {
      const { workflow } = head
      services.log.error('a run needs an administrator', { workflowId: id, workflow, ...next.incident })
    }
    return new UnfinishedRun(id, {
      state: isUnknown ? 'unknown' : 'part',
      isRetried,
      cause: failure,
      ...(target === undefined ? {} : { target }),
    })
  }

  async #skipping(data: JsonObject): Promise<Pick<Incident, 'maySkip'>> {
    const maySkip = await this.#parts.maySkip(data)
    return maySkip === undefined ? {} : { maySkip }
  }

  /** All effects of the run are one transaction, with its end if the run can be read later. */
  async #endUnstored(
    { trail, log }: ExecutedSteps,
    failure: GatewayError | undefined,
    effects: RunEffects,
  ): Promise<void> {
    const { services, kept } = this.#parts
    const { audit = [], ...others } = effects
    if (kept) {
      const { head } = this.#state
      const run = { head, data: endedCallForm, state: this.#endState(failure), touched: trail.count > 0 }
      await services.runs.start(run, { effects: { ...effects, steps: log.take(1) } })
    } else if (Object.keys(others).length > 0) await services.runs.record(effects)
    else if (audit.length > 0) await services.audit.append(audit)
  }

  async #endStored(
    run: RunClaim,
    { open, trail, log }: ExecutedSteps,
    failure: GatewayError | undefined,
    effects: RunEffects,
  ): Promise<void> {
    const { services, kept } = this.#parts
    const unknown = open.length === 0 ? [] : unreported(this.#planned, trail.rows)
    const end = this.#endState(failure)
    const withSteps = (): RunEffects => ({ ...effects, steps: log.take(1) })
    try {
      // It is unknown whether the target made the change, so a worker finds out, as after a crash.
      if (end.state === 'failed' && unknown.length > 0) {
        const data = lostCallForm(this.#state, unknown, end.incident)
        await this.#commit(run, readyNow, { data }, withSteps())
      } else if (kept) await this.#commit(run, end, { data: endedCallForm }, withSteps())
      else await services.runs.record({ ...effects, forgets: run })
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'VERSION_MISMATCH') throw error
      // Another worker counted this process as dead. Add only the entries that it has not written.
      const { rows } = await services.audit.list({ workflowId: run.id, limit: 500 })
      await services.runs.record({ ...effects, audit: unreported(effects.audit ?? [], rows) })
    }
  }

  async #commit(
    run: RunClaim,
    next: NextState,
    { data, secret, touched = true }: Pick<NewRun, 'data' | 'secret' | 'touched'>,
    effects: RunEffects,
  ): Promise<RunState> {
    const form = { data, touched, ...(secret === undefined ? {} : { secret }) }
    const state = await this.#parts.services.runs.commit({ run, next, effects, ...form })
    // The run was cancelled before the next change.
    if (next.state === 'running' && state !== 'running') throw cancelled(run.id)
    return state
  }

  #endState(failure: GatewayError | undefined) {
    if (failure === undefined) return { state: 'completed' } as const
    return { state: 'failed', incident: incidentOf(failure, taskOf(this.#state)) } as const
  }

  #unaudited(error: unknown, failure: GatewayError | undefined): GatewayError {
    const { id, workflow } = this.#state.head
    this.#parts.services.log.error('audit could not be written', { workflowId: id, workflow, err: error })
    // A retry is safe, since provisioning writes only what differs; the store's error says when.
    const unreachable = error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE' ? error : undefined
    const text = `the audit of workflow "${workflow}" could not be written`
    return new GatewayError(unreachable?.code ?? 'WORKFLOW_FAILED', text, {
      cause: failure === undefined ? error : new AggregateError([failure, error]),
      retryAfter: unreachable?.retryAfter,
    })
  }
}

const cancelled = (run: string): GatewayError =>
  new GatewayError('CONFLICT', `the run ${run} was cancelled`, { publicText: 'The run was cancelled.' })

/** The stored form of a response. */
export const resultToJson = ({ id, status, changes }: WorkflowResult): JsonObject => ({ id, status, changes })
