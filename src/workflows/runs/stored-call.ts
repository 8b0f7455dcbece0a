import { setTimeout as delay } from 'node:timers/promises'
import { GatewayError } from '#kernel/errors.ts'
import { processName } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { WorkflowResult } from '#sdk/workflow/workflow.ts'
import { claimOf, incidentOf, type RunState, type StoredRun } from '#workflows/record/run.ts'
import { stillUnderWay, UnfinishedRun } from '#workflows/record/run-requests.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'
import type { NewRun, RunEffects, StepCommit } from '#workflows/store/run-commit.ts'
import type { CallParts } from './call-execution.ts'
import { ClaimKeeper } from './claim-keeper.ts'
import { ClaimedRunExecution } from './claimed-run.ts'
import { refusalOf } from './previews.ts'
import { defaultLimits } from './run-worker.ts'
import { newRunOf } from './saved-run.ts'
import type { Workflows } from './workflows.ts'

/** How long a run waits for another one of its subject to end. */
const waitMillis = 2_000

interface StoredCallParts extends CallParts {
  readonly workflows: Workflows
  readonly resource: string | undefined
  /** The caller read the user before, and must read it again if another run changed it meanwhile. */
  readonly isBasedOnRead: boolean
}

/**
 * Executes a run that may change several systems within its call. It is stored before its first step and claimed by this
 * process, so that a worker continues it if a step fails part way or the process dies. No other run of the subject is
 * executed meanwhile, in any process.
 */
export class StoredCall {
  readonly #state: RunProgress
  readonly #parts: StoredCallParts
  #execution: ClaimedRunExecution | undefined

  constructor(state: RunProgress, parts: StoredCallParts) {
    this.#state = state
    this.#parts = parts
  }

  /** Throws UnfinishedRun if it has changed something, or may have, and failed; other errors of targets mean no change. */
  async run(): Promise<WorkflowResult> {
    const { services, workflows } = this.#parts
    const { runs, leaseMillis, log } = services
    const claimed = await this.#store()
    const keeper = new ClaimKeeper(runs, claimOf(claimed), { leaseMillis, stepMillis: defaultLimits.stepMillis }, log)
    const execution = new ClaimedRunExecution(claimed, {
      services,
      use: (work) => work(workflows),
      retries: defaultLimits.retries,
      leaseMillis,
      stopping: () => false,
      commit: (step) => this.#commit(step),
      saveRows: (rows) => this.#saveRows(rows),
    })
    this.#execution = execution
    try {
      return this.#result(
        await execution.proceed(
          this.#state,
          () => keeper.step(),
          () => refusalOf(this.#state, workflows),
        ),
      )
    } finally {
      keeper.end()
    }
  }

  async #store(): Promise<StoredRun> {
    const { services, resource, saveDefinitions } = this.#parts
    const { runs, secrets, leaseMillis, clock } = services
    await saveDefinitions()
    const run: NewRun = {
      ...(await newRunOf(this.#state, secrets)),
      state: { state: 'running', leaseMillis, worker: processName() },
      ...(resource === undefined ? {} : { resource }),
    }
    await this.#start(() => runs.start(run))
    const { head, data, secret } = run
    const now = clock()
    return {
      head,
      data,
      secret,
      state: 'running',
      attempt: 1,
      fence: 1,
      touched: false,
      due: now,
      created: now,
      updated: now,
    }
  }

  /** Only one run of a subject is executed at a time; CONFLICT says that another one is. */
  async #start(start: () => Promise<unknown>): Promise<void> {
    const end = performance.now() + waitMillis
    const { subject } = this.#state.head
    for (let pause = 10; ; pause = Math.min(pause * 2, 200)) {
      // It failed while this run waited for it, and comes first.
      if (await this.#parts.services.runs.hasReady(subject)) throw stillUnderWay(subject)
      try {
        await start()
        return
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
        if (performance.now() > end) throw stillUnderWay(subject)
        await delay(pause)
        if (this.#parts.isBasedOnRead) {
          throw new GatewayError('VERSION_MISMATCH', `another run for "${subject}" is being executed`)
        }
      }
    }
  }

  #result(reached: RunState | 'void'): WorkflowResult {
    const { id } = this.#state.head
    const { changes = 0, written, failure, isOpen = false } = this.#execution ?? {}
    switch (reached) {
      case 'completed':
      case 'denied':
        return { id, status: 'completed', changes, written }
      case 'waiting':
        return { id, status: 'waiting', changes }
      case 'cancelled':
      case 'expired':
        throw new GatewayError('CONFLICT', `the run ${id} was ${reached}`, { publicText: `The run was ${reached}.` })
      case 'incident':
        if (failure?.error.code === 'NO_APPROVERS') return { id, status: 'waiting', changes }
        break
      default:
    }
    const isContinued = changes > 0 || isOpen || reached === 'void'
    if (failure !== undefined && (!isContinued || reached === 'failed')) throw failure.error
    throw new UnfinishedRun(id, {
      state: isOpen || failure === undefined ? 'unknown' : 'part',
      isRetried: reached !== 'incident',
      ...(failure?.target === undefined ? {} : { target: failure.target }),
      ...(failure === undefined ? {} : { cause: failure.error }),
    })
  }

  /** Like the worker's; but a run that ended is kept only if it can be read later, and one that failed without a change ends. */
  async #commit(step: StepCommit): Promise<RunState | 'void'> {
    const { services } = this.#parts
    services.crash('before-commit')
    try {
      const state = await this.#commitStep(step)
      services.crash('after-commit')
      return state
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'VERSION_MISMATCH') throw error
      // A worker counted this process as dead and continues the run.
      await this.#saveRows(step.effects.audit ?? [])
      return 'void'
    }
  }

  async #commitStep(step: StepCommit): Promise<RunState> {
    const { services, kept, answer } = this.#parts
    const { runs } = services
    const { next, run } = step
    const hasEnded = next.state === 'completed' || next.state === 'denied'
    const response = hasEnded || next.state === 'waiting' ? answer(this.#result(next.state)) : undefined
    const effects: RunEffects = { ...step.effects, ...(response && { answer: response }) }
    const { changes = 0, isOpen = false, failure } = this.#execution ?? {}
    const hasFailed = next.state === 'ready' || next.state === 'incident' || next.state === 'failed'
    const isRefused = hasFailed && changes === 0 && !isOpen && failure?.error.code !== 'NO_APPROVERS'
    if (!kept && (hasEnded || isRefused)) {
      const { steps: _, ...others } = effects
      await runs.record({ ...others, forgets: run })
      return isRefused ? 'failed' : next.state
    }
    if (!isRefused) return await runs.commit({ ...step, effects })
    const { error = 'unknown', task = 'unknown', target } = failure ?? {}
    const incident = incidentOf(error, task, target)
    return await runs.commit({ ...step, next: { state: 'failed', incident }, effects })
  }

  async #saveRows(rows: readonly AuditEntry[]): Promise<void> {
    const { audit, log } = this.#parts.services
    if (rows.length === 0) return
    await audit.append(rows).catch((err: unknown) => {
      if (err instanceof GatewayError && err.code === 'CONFLICT') return
      log.error('audit could not be written', { workflowId: this.#state.head.id, rows: rows.length, err })
    })
  }
}
