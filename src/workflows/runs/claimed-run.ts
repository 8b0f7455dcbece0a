import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import { newMails } from '#mail/mail-outbox.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { AttributeWrite } from '#sdk/flow/flow.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import { AccountExists } from '#sdk/target/new-account.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { ownTarget } from '#workflows/approvals/approval-audit.ts'
import { type Incident, incidentOf, type RunState, type StoredRun } from '#workflows/record/run.ts'
import { auditedRun } from '#workflows/record/run-audit.ts'
import { AnotherSubject } from '#workflows/record/run-requests.ts'
import {
  type ExecutedSteps,
  failureOf,
  logFailure,
  type RunKeeper,
  type StepFailure,
  type StepLog,
  type StepPlan,
  type StepRun,
  type StepsEnd,
} from '#workflows/steps/execute-steps.ts'
import { findPlannedChanges, type PlannedChange, unreported } from '#workflows/steps/planned-changes.ts'
import { runEffects } from '#workflows/steps/run-effects.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'
import { taskOf } from '#workflows/steps/walk.ts'
import type { WorkflowServices } from '#workflows/steps/workflow-services.ts'
import type { NextState, RunEffects, StepCommit, StoredState } from '#workflows/store/run-commit.ts'
import { ClaimLost } from './claim-keeper.ts'
import { accountConflicts } from './previews.ts'
import { type RetryLimits, retryDelay } from './retry-policy.ts'
import {
  isLostCall,
  newAccountIn,
  RunSealer,
  readLostCall,
  remainingForm,
  restoreStoredRun,
  type SavedRun,
  saveRun,
  signalFromJson,
  withoutVersions,
  withPlannedChanges,
} from './saved-run.ts'
import type { Workflows } from './workflows.ts'
import { startedCall } from './workflows.ts'

/** Runs `work` with the workflows of the current configuration, which stay open until it ends. */
export type UseWorkflows = <T>(work: (workflows: Workflows) => Promise<T>) => Promise<T>

interface ClaimedRunParts {
  readonly services: WorkflowServices
  readonly use: UseWorkflows
  readonly retries: RetryLimits
  readonly leaseMillis: number
  /** True when the worker should stop: the run is given back at its next commit. */
  stopping(): boolean
  /** The current state of the run; `void` if another worker has it, and then its audit rows were saved. */
  commit(step: StepCommit): Promise<RunState | 'void'>
  /** Audit rows outside of a commit of the run. */
  saveRows(rows: readonly AuditEntry[]): Promise<void>
}

/** The number of leases during which a requested change may still arrive. */
const lateLeases = 2

/** One claim on a run: executes step after step, each committed before the next, until the run leaves the worker. */
export class ClaimedRunExecution {
  readonly #run: StoredRun
  readonly #parts: ClaimedRunParts
  readonly #sealer: RunSealer
  #attempt: number
  #touched: boolean
  /** As last committed. */
  #form: StoredState
  #changes = 0
  readonly #written: AttributeWrite[] = []
  #isOpen = false
  #failure: StepFailure | undefined

  constructor(run: StoredRun, parts: ClaimedRunParts) {
    this.#run = run
    this.#parts = parts
    this.#sealer = new RunSealer(parts.services.secrets, run.head.id)
    // The commit of planned changes resets the attempts of the step.
    const before = run.data['attempts']
    this.#attempt = run.attempt + (typeof before === 'number' ? before - 1 : 0)
    this.#touched = run.touched
    const { data, secret, signal } = run
    const kept = signal === undefined ? data : { ...data, signal }
    this.#form = secret === undefined ? { data: kept } : { data: kept, secret }
  }

  /** How many changes its steps made. */
  get changes(): number {
    return this.#changes
  }

  /** The attributes that its steps changed. */
  get written(): readonly AttributeWrite[] {
    return this.#written
  }

  /** It is unknown whether the last step has changed something. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Why the last step failed. */
  get failure(): StepFailure | undefined {
    return this.#failure
  }

  /** `stepAbort` returns the signal of each step. Throws errors of the commit. */
  async execute(stepAbort: () => AbortSignal): Promise<void> {
    if (isLostCall(this.#run.data)) return await this.#settleLostCall()
    const early = this.#earlyEnd()
    if (early !== undefined) {
      await this.#commit(early, this.#form, {})
      return
    }
    let state: RunProgress
    try {
      state = await this.#restore()
    } catch (error) {
      await this.#commit(await this.#afterFailure(error, 'start'), this.#form, {})
      return
    }
    if (await this.#isRefused(state)) return
    await this.proceed(state, stepAbort)
  }

  /**
   * Executes the run from its next step, unless it is refused. Returns the state in which the run leaves this process.
   */
  async proceed(
    state: RunProgress,
    stepAbort: () => AbortSignal,
    refusal?: () => Promise<StepFailure | undefined>,
  ): Promise<RunState | 'void'> {
    this.#failure = await refusal?.()
    if (this.#failure !== undefined) {
      const { error, task, target } = this.#failure
      logFailure(this.#parts.services.log, state, error)
      return await this.#commit({ state: 'failed', incident: incidentOf(error, task, target) }, this.#form, {})
    }
    for (;;) {
      const reached = await this.#advance(state, stepAbort())
      if (reached !== 'running') return reached
      this.#attempt = 1
    }
  }

  /**
   * Before its first write, a run that may only create accounts ends if one of its targets already has the account,
   * as far as the preview shows. Later the write is refused.
   */
  async #isRefused(state: RunProgress): Promise<boolean> {
    const isDenied = state.signal?.kind === 'approval' && !state.signal.approved
    if (state.newAccount === undefined || isDenied) return false
    try {
      const conflict = await this.#parts.use(async (workflows) => {
        await workflows.load(state)
        return (await accountConflicts(state, workflows))?.error
      })
      if (conflict === undefined) return false
      const next = await this.#afterFailure(conflict, taskOf(state))
      await this.#commit(next, this.#form, await this.#refusal(conflict, next))
    } catch (error) {
      await this.#commit(await this.#afterFailure(error, taskOf(state)), this.#form, {})
    }
    return true
  }

  /**
   * If the run ends because it met an account that is not its own, notifies requester and approvers and writes an audit
   * entry; if a task gave it another user, writes an audit entry.
   */
  async #refusal(error: unknown, next: NextState): Promise<RunEffects> {
    if (error instanceof AnotherSubject) return anotherSubjectEffects(this.#run, error, this.#parts.services.clock())
    if (!isAccountExists(error) || next.state !== 'failed') return {}
    const informed = await this.#parts.use((workflows) =>
      workflows.mailsToDeciders(this.#run.head.id, (texts) => texts('mail.exists')),
    )
    return refusalEffects(this.#run, error, informed, this.#parts.services.clock())
  }

  /**
   * A commit that continues the claim of a cancelled run ends it in the requested state. What has been changed in part
   * is finished even after the deadline.
   */
  #earlyEnd(): NextState | undefined {
    const { deadline } = this.#run.head
    const { cancel } = this.#run
    const attempt = this.#attempt
    const { services, retries, leaseMillis } = this.#parts
    if (cancel !== undefined) return { state: 'running', leaseMillis }
    if (!this.#touched && deadline !== undefined && deadline <= services.clock()) return { state: 'expired' }
    if (attempt <= retries.attempts) return undefined
    const message = `the step was begun ${attempt - 1} times, and its process ended each time`
    return { state: 'incident', incident: { task: 'unknown', code: 'WORKER_LOST', message } }
  }

  /**
   * The process that executed the run within its call is gone, and no caller waits for the response: the audit gets
   * the changes that are found, and the run ends. An administrator handles changes that can't be found by reading.
   */
  async #settleLostCall(): Promise<void> {
    const { id, workflow: name } = this.#run.head
    const { data } = this.#run
    await this.#parts.use(async (workflows) => {
      try {
        const { task, plannedChanges, incident } = readLostCall(data)
        const { there, absent, unknown } = await workflows.reading(name, ({ target, log }) =>
          findPlannedChanges(plannedChanges, { target, workflow: { id, name }, log }),
        )
        const audit = await this.#confirmed(there)
        const again = this.#lookAgainIn(absent)
        if (again !== undefined) {
          const later: NextState = { state: 'ready', due: { inMillis: again }, attempt: 0 }
          await this.#commit(later, { data: remainingForm(data, [...absent, ...unknown]) }, { audit })
          return
        }
        const next: NextState =
          unknown.length === 0
            ? { state: 'failed', incident }
            : { state: 'incident', incident: incidentOf(unknownOutcome(unknown), task) }
        await this.#commit(next, { data: remainingForm(data, unknown) }, { audit })
      } catch (error) {
        await this.#commit(await this.#afterFailure(error, 'call'), this.#form, {})
      }
    })
  }

  /** A target may still work on a call after its caller died, so a missing change may appear for a while. */
  #lookAgainIn(absent: readonly PlannedChange[]): number | undefined {
    const { services, leaseMillis } = this.#parts
    const latest = Math.max(...absent.map(({ time }) => time.getTime()))
    const left = latest + lateLeases * leaseMillis - services.clock().getTime()
    return left > 0 ? Math.min(left, leaseMillis) : undefined
  }

  async #restore(): Promise<RunProgress> {
    const state = await restoreStoredRun(this.#run, this.#sealer)
    const signal = signalFromJson(this.#run.signal)
    if (signal !== undefined) state.signal = signal
    if (signal?.kind === 'approval' && signal.approved) state.approval = signal.approval
    return state
  }

  async #advance(state: RunProgress, abort: AbortSignal): Promise<RunState | 'void'> {
    const { services, use } = this.#parts
    const wasTouched = this.#touched
    return await use(async (workflows) => {
      let keeper: StoredKeeper
      let executed: ExecutedSteps
      try {
        await workflows.load(state)
        keeper = new StoredKeeper(state, {
          abort,
          commit: (saved, log) => this.#commitPlanned(saved, log),
        })
        executed = await workflows.step(state, keeper)
      } catch (error) {
        this.#failure = { error: failureOf(state, error), task: taskOf(state), target: undefined }
        return await this.#commit(await this.#afterFailure(error, taskOf(state)), this.#form, {})
      }
      const { end, trail, log } = executed
      this.#changes += trail.count
      this.#written.push(...trail.written)
      this.#isOpen = executed.open.length > 0
      if (end.kind === 'failed') {
        this.#failure = { error: failureOf(state, end.error), task: end.task, target: end.target }
        logFailure(services.log, state, this.#failure.error)
      } else if (trail.count > 0) services.crash('after-target-call')
      const made = trail.rows.length
      const rows = [...trail.rows, ...(await this.#confirmed(executed.confirmed))]
      executed.abandoned?.then(() => this.#parts.saveRows(trail.rows.slice(made))).catch(() => {})
      // What was planned counts only if it may have been made.
      this.#touched = wasTouched || this.#isOpen || trail.count > 0 || rows.length > 0
      try {
        return await this.#settle(workflows, executed, keeper.saved(executed), rows)
      } finally {
        log.report(services.observer, this.#run.head.workflow)
      }
    })
  }

  /** Durable before the target is called. A run that was lost or cancelled does not continue. */
  async #commitPlanned(saved: SavedRun, log: StepLog): Promise<void> {
    const form = await this.#sealer.form(saved)
    this.#touched = true
    const next = { state: 'running', leaseMillis: this.#parts.leaseMillis } as const
    const steps = log.take(this.#attempt)
    // After steps that were committed here, the planning step is in its first attempt.
    const state = await this.#commit(next, form, { steps }, steps.length > 0 ? 1 : this.#attempt)
    if (state !== 'running') throw new ClaimLost(this.#run.head.id)
  }

  /** What an earlier attempt did, unless the audit already has it. */
  async #confirmed(plannedChanges: readonly PlannedChange[]): Promise<readonly AuditEntry[]> {
    if (plannedChanges.length === 0) return []
    const { rows } = await this.#parts.services.audit.list({ workflowId: this.#run.head.id, limit: 500 })
    return unreported(plannedChanges, rows)
  }

  /** Commits the effects of the steps; an incident if the store can't accept them. */
  async #settle(
    workflows: Workflows,
    { end, requests, log }: ExecutedSteps,
    saved: SavedRun,
    rows: readonly AuditEntry[],
  ): Promise<RunState | 'void'> {
    const common = { steps: log.take(this.#attempt), audit: rows }
    try {
      const form = await this.#sealer.form(saved)
      const { depth, session } = saved.data
      const by = {
        head: this.#run.head,
        depth: typeof depth === 'number' ? depth : 0,
        session: typeof session === 'string' ? session : undefined,
        ...newAccountIn(saved.data),
      }
      const prepare = (call: WorkflowCall) => workflows.prepare(startedCall(call, by))
      const requested = await runEffects(by, requests, prepare, workflows.mailing)
      const timers = end.kind === 'wait' && end.waiting.timers.length > 0 ? { timers: end.waiting.timers } : {}
      const next = await this.#nextState(end)
      const refusal = end.kind === 'failed' ? await this.#refusal(end.error, next) : {}
      const mails = [...(requested.mails ?? []), ...(refusal.mails ?? [])]
      const audit = [...rows, ...(refusal.audit ?? [])]
      const effects = { ...requested, ...common, ...timers, audit, ...(mails.length === 0 ? {} : { mails }) }
      return await this.#commit(next, form, effects)
    } catch (error) {
      if (retryDelay(error, 1, this.#parts.retries) !== undefined) throw error
      return await this.#commit({ state: 'incident', incident: incidentOf(error, 'commit') }, this.#form, common)
    }
  }

  async #nextState(end: StepsEnd): Promise<NextState> {
    switch (end.kind) {
      case 'on':
        return this.#parts.stopping()
          ? { state: 'ready', due: { inMillis: 0 }, attempt: 0 }
          : { state: 'running', leaseMillis: this.#parts.leaseMillis }
      case 'end':
        return { state: end.state }
      case 'wait': {
        const { approval } = end.waiting
        return approval === undefined ? { state: 'waiting' } : { state: 'waiting', approval }
      }
      case 'failed':
        return await this.#afterFailure(end.error, end.task, end.target)
    }
  }

  async #afterFailure(error: unknown, task: string, target?: string): Promise<NextState> {
    if (error instanceof ClaimLost) return { state: 'ready', due: { inMillis: 0 }, attempt: this.#attempt }
    // What was made in part is left to an administrator, who can remove the other account, or this one.
    if (isAccountExists(error) && !(await this.#hasChanged(error))) {
      return { state: 'failed', incident: incidentOf(error, task) }
    }
    const delay = retryDelay(error, this.#attempt, this.#parts.retries)
    if (delay === undefined) return { state: 'incident', incident: incidentOf(error, task, target) }
    return { state: 'ready', due: { inMillis: delay }, attempt: this.#attempt }
  }

  /** Whether the run has changed something, or the run that started it has created the account somewhere. */
  async #hasChanged({ targets }: AccountExists): Promise<boolean> {
    if (this.#changes > 0 || targets.length > 0) return true
    const { rows } = await this.#parts.services.audit.list({ workflowId: this.#run.head.id, limit: 500 })
    return rows.some(({ target }) => target !== ownTarget)
  }

  async #withMaySkip<S extends { readonly incident: Incident }>(next: S, data: JsonObject): Promise<S> {
    const maySkip = await this.#parts.use((workflows) => workflows.maySkip(data))
    return maySkip === undefined ? next : { ...next, incident: { ...next.incident, maySkip } }
  }

  async #commit(
    next: NextState,
    { data, ...secret }: StoredState,
    effects: RunEffects,
    attempts?: number,
  ): Promise<RunState | 'void'> {
    const { id, workflow } = this.#run.head
    const { fence } = this.#run
    const { attempts: _, ...plain } = data
    const form = { ...secret, data: attempts === undefined ? plain : { ...plain, attempts } }
    const marked = next.state === 'incident' ? await this.#withMaySkip(next, form.data) : next
    const step = { run: { id, fence }, next: marked, ...form, touched: this.#touched, effects }
    const state = await this.#parts.commit(step)
    // A call that failed without a change is not stored as an incident.
    if (state === 'incident' && next.state === 'incident') {
      this.#parts.services.log.error('a run needs an administrator', { workflowId: id, workflow, ...next.incident })
    }
    this.#form = form
    return state
  }
}

interface KeeperParts {
  readonly abort: AbortSignal
  /** Throws when the claim is lost. */
  commit(saved: SavedRun, log: StepLog): Promise<void>
}

/** Steps that share a commit because none of them has effects outside the run. */
const maxQuiet = 64
/** Custom tasks may do anything, so each is followed by a commit. */
const loudTasks: ReadonlySet<string> = new Set(['customTask'])

/**
 * Keeps the state that a claimed run continues from. Steps that change nothing but the run itself share a commit, since
 * repeating them after a crash changes nothing.
 */
class StoredKeeper implements RunKeeper {
  readonly abort: AbortSignal
  readonly #commit: KeeperParts['commit']
  #saved: SavedRun
  #steps = 0

  constructor(state: RunProgress, { abort, commit }: KeeperParts) {
    this.abort = abort
    this.#commit = commit
    this.#saved = saveRun(state)
  }

  keep(state: RunProgress): void {
    this.#saved = saveRun(state)
  }

  planChanges({ latest, earlier, log }: StepPlan): Promise<void> {
    return this.#commit(withPlannedChanges(this.#saved, [...earlier, ...latest]), log)
  }

  commitsAfter({ calledTarget, effects, taskType }: StepRun): boolean {
    return ++this.#steps >= maxQuiet || calledTarget || !effects.isEmpty || loudTasks.has(taskType)
  }

  /** The state to continue from, or to retry the failed step from. */
  saved({ open, trail, end }: ExecutedSteps): SavedRun {
    if (open.length > 0) return withPlannedChanges(this.#saved, open)
    return end.kind === 'failed' && trail.count > 0 ? withoutVersions(this.#saved) : this.#saved
  }
}

/** Reading can't show whether these changes were made. */
function unknownOutcome(plannedChanges: readonly PlannedChange[]): GatewayError {
  const what = plannedChanges.map(({ target, kind, action, attribute }) => `${target}: ${action} ${kind} ${attribute}`)
  const text = 'the call ended without an answer; it is unknown whether the change was made'
  return new GatewayError('WORKFLOW_FAILED', `${text}: ${[...new Set(what)].slice(0, 20).join('; ')}`)
}

/** A run that may only create accounts met one that it did not create. */
const isAccountExists = (error: unknown): error is AccountExists => error instanceof AccountExists

/** Committed with the end of such a run: the mails to the registered user and to approvers, and the audit. */
function refusalEffects(
  run: StoredRun,
  { code, publicText }: GatewayError,
  informed: readonly NewMail[],
  time: Date,
): Required<Pick<RunEffects, 'mails' | 'audit'>> {
  const refusal = newAccountIn(run.data).newAccount?.refusal
  const what = { action: 'delete', attribute: 'registration', value: code, reason: publicText } as const
  return {
    mails: [...(refusal === undefined ? [] : newMails(run.head.id, 0, [refusal], 'account-exists')), ...informed],
    audit: [rowOf(run, what, time)],
  }
}

const longest = 200

/** Committed with the incident of a bound run that a task gave another user. */
function anotherSubjectEffects(
  run: StoredRun,
  { value, publicText }: AnotherSubject,
  time: Date,
): Required<Pick<RunEffects, 'audit'>> {
  const shown = value.slice(0, longest).toWellFormed()
  const what = { action: 'refuse', attribute: 'subject', value: shown, reason: publicText } as const
  return { audit: [rowOf(run, what, time)] }
}

const rowOf = (
  { head }: StoredRun,
  what: Pick<AuditEntry, 'action' | 'attribute' | 'value' | 'reason'>,
  time: Date,
): AuditEntry => ({
  id: newId(),
  time,
  ...auditedRun(head),
  subject: head.subject,
  target: ownTarget,
  kind: 'entry',
  ...what,
})
