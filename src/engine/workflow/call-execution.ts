import type { AuditPlace, AuditTrail } from '#engine/provisioning/audit-trail.ts'
import { CallRecord } from '#engine/workflow/call-record.ts'
import { CollectedEffects, type PasswordNotes } from '#engine/workflow/collected-effects.ts'
import { runEffects, type StepWish } from '#engine/workflow/run-effects.ts'
import { failureOf, logFailure } from '#engine/workflow/run-failure.ts'
import type { RunProgress } from '#engine/workflow/run-progress.ts'
import { auditTrail } from '#engine/workflow/run-trail.ts'
import { stepContext } from '#engine/workflow/step-context.ts'
import { StepLog } from '#engine/workflow/step-log.ts'
import { newRunOf } from '#engine/workflow/stored-form.ts'
import { prepareWait, type Waiting } from '#engine/workflow/waiting.ts'
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
import type { FirstState, NewRun, NextState, RunEffects } from '#storage/runs/run-commit.ts'

/** How long the rest of the run may take after a password was written, before it counts as that of a dead process. */
const leasesOfPassword = 4

export interface CallParts {
  readonly services: WorkflowServices
  readonly definitions: DefinitionOf
  readonly approvals: ApprovalOpener
  prepare(call: WorkflowCall): Promise<NewRun>
  /** So that the run can be taken up when it is stored. */
  saveDefinitions(): Promise<void>
  readonly deadline: Date | undefined
  /** The target's changes and their audit are one commit. */
  auditsWithin(target: string): boolean
  /** The run is to be found when it has ended. */
  readonly kept: boolean
  /** What is to be remembered of the answer. */
  answer(result: WorkflowResult): IdempotentAnswer | undefined
}

/**
 * Executes a run within its call. One that does not wait is never stored: what it did is in the audit, and what is to
 * follow from its steps is committed, in one transaction at its end. One that has to wait is stored as it stands then.
 */
export class CallExecution {
  readonly #state: RunProgress
  readonly #parts: CallParts
  readonly #trail: AuditTrail
  readonly #record: CallRecord
  readonly #wishes: StepWish[] = []
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
    this.#log.tell(services.observer, workflow)
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

  /** No one continues this run when the process dies, so what a password leads to is noted before it is written. */
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
      // It counts as unknown then, and sessions end.
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
      if (!effects.isEmpty) this.#wishes.push({ step: number, effects })
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
      ...(await runEffects(this.#state, this.#wishes, prepare)),
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

  /** An approval that nobody may decide is not the caller's to mend: the run is stored all the same, as an incident soon. */
  async #waiting(wait: WaitOutcome): Promise<Waiting & { readonly undecidable: boolean }> {
    const { approvals, deadline } = this.#parts
    try {
      return { ...(await prepareWait(this.#state, wait, approvals, deadline)), undecidable: false }
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'NO_APPROVERS') throw error
      return { timers: [], undecidable: true }
    }
  }

  /** Also for a run that failed: what it changed before is in the audit, and access that it gave ends in time. */
  async #end(result: WorkflowResult, failed: GatewayError | undefined): Promise<GatewayError | undefined> {
    const { prepare } = this.#parts
    const audit = this.#trail.rows
    let failure = failed
    let effects: RunEffects = {}
    try {
      if (this.#wishes.length > 0) effects = await runEffects(this.#state, this.#wishes, prepare)
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
    // Asking again is safe, since provisioning writes only what differs; when to, the store's own error says.
    const unreachable = error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE' ? error : undefined
    const text = `the audit of workflow "${workflow}" could not be written`
    return new GatewayError(unreachable?.code ?? 'WORKFLOW_FAILED', text, {
      cause: failure === undefined ? error : new AggregateError([failure, error]),
      ...(unreachable?.retryAfter === undefined ? {} : { retryAfter: unreachable.retryAfter }),
    })
  }
}

/** What an answer is remembered as. */
export const resultToJson = ({ id, status, changes }: WorkflowResult): JsonObject => ({ id, status, changes })
