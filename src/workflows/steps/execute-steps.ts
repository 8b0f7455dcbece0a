import type { AuditStore } from '#audit/store/audit-store.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { LogFields, Logger } from '#kernel/logger.ts'
import { shownReason } from '#kernel/secret-values.ts'
import { type Tracer, tracer } from '#kernel/tracing.ts'
import type { TargetChange, TargetRequest } from '#sdk/target/target.ts'
import type { RequestMap, TaskContext, TaskOutcome } from '#sdk/workflow/workflow-task.ts'
import type { NewApproval } from '#workflows/record/approval.ts'
import type { StepRecord } from '#workflows/record/run.ts'
import { auditedRun } from '#workflows/record/run-audit.ts'
import type { NewTimer } from '#workflows/timers/timer.ts'
import { accountOrigin } from './account-origin.ts'
import { type AuditPlace, AuditTrail } from './audit-trail.ts'
import { isRefusedCall, type PlannedChange, plannedChangesOf, unreported } from './planned-changes.ts'
import { CollectedEffects, type PasswordNotes, type StepRequests } from './run-effects.ts'
import { currentUser, type RunProgress } from './run-progress.ts'
import { deadlineTimer, wakeTimer } from './run-timers.ts'
import {
  beginStep,
  type DefinitionOf,
  dropUsedPassword,
  endStep,
  nextPosition,
  type Position,
  positionText,
  taskOf,
  type WaitOutcome,
} from './walk.ts'
import type { ApprovalOpener, StepObserver, WorkflowServices } from './workflow-services.ts'

/** The configuration that the steps are executed with. */
export interface StepParts {
  readonly services: WorkflowServices
  readonly definitions: DefinitionOf
  readonly approvals: ApprovalOpener
  /** The target's changes and their audit are one commit, so planned changes need not be stored. */
  auditsWithin(target: string): boolean
}

/** Planned changes, to be stored before the target is called. */
export interface StepPlan {
  readonly latest: readonly PlannedChange[]
  /** Of the same step, in this attempt and before it. */
  readonly earlier: readonly PlannedChange[]
  readonly trail: AuditTrail
  readonly log: StepLog
}

/** Keeps a run while its steps are executed: a worker in the store, a call in memory for as long as possible. */
export interface RunKeeper {
  /** Called between two steps, where the state is complete. Throws if it can't be stored. */
  keep(state: RunProgress): void
  /** Resolves when they are durable. Throws if the run was lost or cancelled. */
  planChanges(changes: StepPlan): Promise<void>
  /** Called for an approval without approvers, with which the run then waits. Without it, the step fails. */
  allowUndecidable?(): void
  /** Whether to commit this step before the next begins. */
  commitsAfter(step: StepRun): boolean
  readonly passwords?: PasswordNotes
  readonly abort?: AbortSignal
}

export type StepsEnd =
  | { readonly kind: 'on' }
  | { readonly kind: 'end'; readonly state: 'completed' | 'denied' }
  | { readonly kind: 'wait'; readonly waiting: Waiting }
  /** About the last step: the keeper kept the state before it. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly task: string; readonly target?: string | undefined }

/** The error of a step, its task, and the target that it called last. */
export interface StepFailure {
  readonly error: GatewayError
  readonly task: string
  readonly target: string | undefined
}

/** What to commit together. */
export interface ExecutedSteps {
  readonly end: StepsEnd
  readonly trail: AuditTrail
  /** Planned changes of an earlier attempt that were made. */
  readonly confirmed: readonly PlannedChange[]
  /** Planned changes of the failed step with an unknown outcome. */
  readonly open: readonly PlannedChange[]
  readonly requests: readonly StepRequests[]
  readonly log: StepLog
  /** The task that timed out; its later changes are added to the trail. */
  readonly abandoned?: Promise<void>
}

/**
 * Executes the steps of a run until it ends, has to wait or fails, or its keeper has to commit. Does not throw
 * errors of tasks.
 */
export async function executeSteps(state: RunProgress, parts: StepParts, keeper: RunKeeper): Promise<ExecutedSteps> {
  const { services, definitions } = parts
  const trail = auditTrail(state, services.audit)
  const log = new StepLog()
  const requests: StepRequests[] = []
  let confirmed: readonly PlannedChange[] = []
  let step: StepRun | undefined
  const finish = (end: StepsEnd): ExecutedSteps => ({ end, trail, confirmed, open: [], requests, log })
  try {
    let position = nextPosition(state, definitions)
    while (position !== undefined) {
      beginStep(state)
      step = new StepRun(state, position, parts, keeper, { trail, log })
      const outcome = await step.run()
      const wait = endStep(state, position, outcome, definitions)
      dropUsedPassword(state, definitions)
      const waiting = wait && (await prepareWait(state, wait, parts.approvals, keeper))
      log.add(step.entry(outcome.kind))
      if (!step.effects.isEmpty) requests.push({ step: step.number, effects: step.effects })
      if (state.plannedChanges !== undefined) confirmed = unreported(state.plannedChanges, trail.rows)
      delete state.plannedChanges
      position = waiting === undefined ? nextPosition(state, definitions) : undefined
      keeper.keep(state)
      if (waiting !== undefined) return finish({ kind: 'wait', waiting })
      if (position !== undefined && keeper.commitsAfter(step)) return finish({ kind: 'on' })
      step = undefined
    }
    return finish({ kind: 'end', state: state.end ?? 'completed' })
  } catch (error) {
    if (step !== undefined) log.add(step.entry('failed', shownReason(error)))
    const planned = step === undefined || isRefusedCall(error) ? [] : step.plannedChanges
    const failed = finish({ kind: 'failed', error, task: step?.task ?? taskOf(state), target: step?.target })
    const abandoned = step?.abandoned
    return { ...failed, open: [...(state.plannedChanges ?? []), ...planned], ...(abandoned && { abandoned }) }
  }
}

/** What a waiting run is stored with. */
export interface Waiting {
  readonly approval?: NewApproval
  readonly timers: readonly NewTimer[]
}

/** Throws errors of opening an approval. */
async function prepareWait(
  state: RunProgress,
  wait: WaitOutcome,
  approvals: ApprovalOpener,
  keeper: RunKeeper,
): Promise<Waiting> {
  const { head, request, newAccount, appointed } = state
  // A deadline applies while the run waits; its timers end with the wait.
  const timers = head.deadline === undefined ? [] : [deadlineTimer(head.id, head.deadline)]
  if ('until' in wait) return { timers: [...timers, wakeTimer(head.id, wait.until)] }
  const run = { head, step: state.steps + 1, user: currentUser(state), request, newAccount, appointed }
  try {
    const approval = await approvals.open(wait.approval, run)
    delete state.appointed
    return { approval, timers }
  } catch (error) {
    const isUndecidable = error instanceof GatewayError && error.code === 'NO_APPROVERS'
    if (!isUndecidable || keeper.allowUndecidable === undefined) throw error
    keeper.allowUndecidable()
    return { timers: [] }
  }
}

/** A target's own error keeps its code; any other becomes WORKFLOW_FAILED with the original as its cause. */
export function failureOf(state: RunProgress, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const text = `workflow "${state.head.workflow}", task ${taskOf(state)}: ${shownReason(error)}`
  return new GatewayError('WORKFLOW_FAILED', text, { cause: error })
}

export function logFailure(log: Logger, state: RunProgress, failure: GatewayError): void {
  const fields = { workflowId: state.head.id, workflow: state.head.workflow, task: taskOf(state), code: failure.code }
  if (failure.isRefusal) log.info('workflow refused', { ...fields, reason: failure.message })
  else log.error('workflow failed', { ...fields, err: failure })
}

/** One execution of one task. */
export class StepRun {
  readonly number: number
  readonly effects: CollectedEffects
  readonly #state: RunProgress
  readonly #position: Position
  readonly #parts: StepParts
  readonly #keeper: RunKeeper
  readonly #record: { readonly trail: AuditTrail; readonly log: StepLog }
  readonly #started = Date.now()
  #plannedChanges: readonly PlannedChange[] = []
  #target: string | undefined
  #abandoned: Promise<void> | undefined

  constructor(
    state: RunProgress,
    position: Position,
    parts: StepParts,
    keeper: RunKeeper,
    record: { readonly trail: AuditTrail; readonly log: StepLog },
  ) {
    this.number = state.steps
    this.effects = new CollectedEffects(keeper.passwords)
    this.#state = state
    this.#position = position
    this.#parts = parts
    this.#keeper = keeper
    this.#record = record
  }

  get taskType(): string {
    return this.#position.step.taskType
  }

  get task(): string {
    return positionText(this.#position)
  }

  get calledTarget(): boolean {
    return this.#target !== undefined
  }

  /** The target that it called last. */
  get target(): string | undefined {
    return this.#target
  }

  /** Planned changes; none once the task has ended, since it has reported what it changed. */
  get plannedChanges(): readonly PlannedChange[] {
    return this.#plannedChanges
  }

  /** The task, if it timed out. */
  get abandoned(): Promise<void> | undefined {
    return this.#abandoned
  }

  entry(outcome: string, error?: string): StepEntry {
    const { number } = this
    const entry = { number, position: this.#position, started: this.#started, ended: Date.now(), outcome }
    return error === undefined ? entry : { ...entry, error }
  }

  run(): Promise<TaskOutcome> {
    return tracer === undefined ? this.#run() : this.#traced(tracer)
  }

  #traced(tracer: Tracer): Promise<TaskOutcome> {
    const attributes = {
      'gatehouse.task': this.task,
      'gatehouse.task.type': this.taskType,
      'gatehouse.step': this.number,
    }
    const start = { name: `step ${this.taskType}`, kind: 'internal', parent: 'current', attributes } as const
    return tracer.span(start, async (span) => {
      const outcome = await this.#run()
      span.set({ 'gatehouse.outcome': outcome.kind })
      return outcome
    })
  }

  async #run(): Promise<TaskOutcome> {
    const { abort } = this.#keeper
    abort?.throwIfAborted()
    const outcome = await (abort === undefined ? this.#start() : this.#startUntil(abort))
    this.#plannedChanges = []
    return outcome
  }

  async #start(): Promise<TaskOutcome> {
    return await this.#position.step.task.run(this.#context())
  }

  /** Plain objects without getters: they are created for every step, and targets may copy them. */
  #context(): TaskContext {
    const state = this.#state
    const { services, auditsWithin } = this.#parts
    const { clock, audit } = services
    const { trail } = this.#record
    const { head, request, bound, signal } = state
    const user = currentUser(state)
    const workflow = { id: head.id, name: head.workflow }
    const log = new StepLogger(services.log, workflow, this.#position)
    const place = (target: string): AuditPlace => ({ time: clock(), subject: user.userID, target })
    const forTarget = (target: string): TargetRequest => {
      this.#target = target
      return {
        workflow,
        idempotencyKey: `${head.id}/${state.steps}`,
        requestor: head.requester,
        params: requestObject(request),
        log,
        audit: (change) => trail.add(place(target), change),
        auditWithin: (transaction, changes) => trail.appendWithin(transaction, place(target), changes),
        ...(auditsWithin(target) ? {} : { planChanges: (changes) => this.#planChanges(place(target), changes) }),
        signal: this.#keeper.abort,
        newAccount: state.newAccount === undefined ? undefined : accountOrigin(state, target, audit),
      }
    }
    return { user, request, run: head, bound, log, effects: this.effects, forTarget, signal }
  }

  /** Does not wait for a task that ignores the signal. */
  async #startUntil(abort: AbortSignal): Promise<TaskOutcome> {
    const work = this.#start()
    const { promise, reject } = Promise.withResolvers<never>()
    const onAbort = (): void => {
      this.#abandoned = work.then(
        () => {},
        () => {},
      )
      reject(abort.reason)
    }
    abort.addEventListener('abort', onAbort, { once: true })
    try {
      return await Promise.race([work, promise])
    } finally {
      abort.removeEventListener('abort', onAbort)
    }
  }

  async #planChanges(place: AuditPlace, changes: readonly TargetChange[]): Promise<void> {
    if (changes.length === 0) return
    const latest = plannedChangesOf(this.#record.trail, place, changes)
    const earlier = [...(this.#state.plannedChanges ?? []), ...this.#plannedChanges]
    this.#plannedChanges = [...this.#plannedChanges, ...latest]
    await this.#keeper.planChanges({ latest, earlier, ...this.#record })
  }
}

interface StepEntry {
  readonly number: number
  readonly position: Position
  readonly started: number
  readonly ended: number
  readonly outcome: string
  readonly error?: string
}

/** The executed steps, for the timeline; formatted on demand. */
export class StepLog {
  readonly #entries: StepEntry[] = []
  #taken = 0

  add(entry: StepEntry): void {
    this.#entries.push(entry)
  }

  /** Steps that were not taken yet; `attempt` is that of the first of all. */
  take(attempt: number): StepRecord[] {
    const from = this.#taken
    this.#taken = this.#entries.length
    return this.#entries.slice(from).map(({ number, position, started, ended, outcome, error }, i) => ({
      number,
      attempt: from + i === 0 ? attempt : 1,
      task: positionText(position),
      taskType: position.step.taskType,
      started: new Date(started),
      ended: new Date(ended),
      outcome,
      ...(error === undefined ? {} : { error: error.slice(0, 1_000) }),
    }))
  }

  report(observer: StepObserver, workflow: string): void {
    for (const { position, outcome, started, ended } of this.#entries) {
      observer.executed({ workflow, taskType: position.step.taskType, outcome, millis: ended - started })
    }
  }
}

/** Without a prototype, so that no key can reach JavaScript's own properties. */
export function requestObject(request: RequestMap): Readonly<Record<string, unknown>> {
  const object: Record<string, unknown> = Object.create(null)
  for (const [key, value] of request) object[key] = value
  return object
}

/** Adds the step and the run to every line; formatted only if there is a line. */
class StepLogger implements Logger {
  readonly #base: Logger
  readonly #workflow: { readonly id: string; readonly name: string }
  readonly #position: Position

  constructor(base: Logger, workflow: { readonly id: string; readonly name: string }, position: Position) {
    this.#base = base
    this.#workflow = workflow
    this.#position = position
  }

  debug(message: string, fields?: LogFields): void {
    this.#base.debug(message, this.#tagged(fields))
  }

  info(message: string, fields?: LogFields): void {
    this.#base.info(message, this.#tagged(fields))
  }

  warn(message: string, fields?: LogFields): void {
    this.#base.warn(message, this.#tagged(fields))
  }

  error(message: string, fields?: LogFields): void {
    this.#base.error(message, this.#tagged(fields))
  }

  with(fields: LogFields): Logger {
    return new StepLogger(this.#base.with(fields), this.#workflow, this.#position)
  }

  #tagged(fields?: LogFields): LogFields {
    return {
      ...fields,
      workflowId: this.#workflow.id,
      workflow: this.#workflow.name,
      task: positionText(this.#position),
      taskType: this.#position.step.taskType,
    }
  }
}

/** A trail for the run's further changes. */
const auditTrail = ({ head, approval }: RunProgress, audit: Pick<AuditStore, 'appendWithin'>): AuditTrail =>
  new AuditTrail({ ...auditedRun(head), approval, reason: head.reason }, audit)
