import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { GatewayError } from '#kernel/errors.ts'
import { processName } from '#kernel/ids.ts'
import type { Closable } from '#kernel/scope.ts'
import { readTraceparent, type Tracer, tracer } from '#kernel/tracing.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { claimOf, type RunState, type StoredRun } from '#workflows/record/run.ts'
import type { WorkflowServices } from '#workflows/steps/workflow-services.ts'
import type { StepCommit } from '#workflows/store/run-commit.ts'
import { ClaimKeeper, type ClaimTimes } from './claim-keeper.ts'
import { ClaimedRunExecution, type UseWorkflows } from './claimed-run.ts'
import { defaultRetries, type RetryLimits } from './retry-policy.ts'

export interface WorkerLimits extends ClaimTimes {
  /** How many runs one process executes concurrently. */
  readonly atOnce: number
  /** How often to look for runs without a wake-up. */
  readonly sweepMillis: number
  /** How long closing waits for running steps. */
  readonly drainMillis: number
  readonly retries: RetryLimits
}

export const defaultLimits: WorkerLimits = {
  atOnce: 16,
  leaseMillis: 30_000,
  stepMillis: 5 * 60_000,
  sweepMillis: 2_000,
  drainMillis: 30_000,
  retries: defaultRetries,
}

const commitTries = 5

/**
 * Executes stored runs, in any number of processes. A worker claims a run, executes it step by step, commits each
 * step with all its effects, and gives the run back. It belongs to the process, not to one configuration: each step
 * uses the current configuration.
 */
export class RunWorker implements Closable {
  readonly name = processName()
  readonly #services: WorkflowServices
  readonly #use: UseWorkflows
  readonly #limits: WorkerLimits
  readonly #active = new Set<Promise<void>>()
  #sweeper: NodeJS.Timeout | undefined
  #claiming: Promise<void> | undefined
  #wanted = false
  #stopping = false

  constructor(services: WorkflowServices, use: UseWorkflows, limits: Partial<WorkerLimits> = {}) {
    this.#services = services
    this.#use = use
    this.#limits = { ...defaultLimits, ...limits }
  }

  /** How many runs this process executes now. */
  get active(): number {
    return this.#active.size
  }

  start(): void {
    if (this.#sweeper !== undefined || this.#stopping) return
    this.#sweeper = setInterval(() => this.wake(), this.#limits.sweepMillis)
    this.wake()
  }

  /** Looks for runs to claim. Cheap, and may be called at any time. */
  wake(): void {
    this.#wanted = true
    if (this.#stopping || this.#sweeper === undefined || this.#claiming !== undefined) return
    // A request may have woken the worker; its trace ends with its response.
    const claiming = tracer === undefined ? this.#claimAll() : tracer.detached(() => this.#claimAll())
    this.#claiming = claiming.finally(() => {
      this.#claiming = undefined
      if (this.#wanted && this.#active.size < this.#limits.atOnce) this.wake()
    })
  }

  /** Claims no more runs; gives running ones back after their current step. */
  async close(): Promise<void> {
    this.#stopping = true
    clearInterval(this.#sweeper)
    await this.#claiming
    if (this.#active.size === 0) return
    const late = new AbortController()
    const drained = Promise.allSettled(this.#active).then(() => late.abort())
    await Promise.race([drained, delay(this.#limits.drainMillis, undefined, { signal: late.signal }).catch(() => {})])
    if (this.#active.size > 0) this.#services.log.warn('runs are left to other workers', { runs: this.#active.size })
  }

  async #claimAll(): Promise<void> {
    const { log, runs, crash } = this.#services
    const { atOnce, leaseMillis } = this.#limits
    while (this.#wanted && !this.#stopping) {
      // Runs whose commit was shared end in the same turn of the event loop, and one claim fills all their slots.
      await nextTurn()
      const free = atOnce - this.#active.size
      // A run that ends frees its slot and looks again.
      if (free <= 0) return
      this.#wanted = false
      try {
        const claimed = await runs.claim(this.name, free, leaseMillis)
        if (claimed.length > 0) crash('after-claim')
        for (const run of claimed) this.#begin(run)
        if (claimed.length === free) this.#wanted = true
      } catch (err) {
        log.warn('runs could not be claimed', { err })
      }
    }
  }

  #begin(run: StoredRun): void {
    const execution = (tracer === undefined ? this.#execute(run) : this.#traced(tracer, run))
      .catch((err: unknown) => {
        // The claim expires, and the step is executed again, here or elsewhere.
        this.#services.log.warn('a run was put down in mid-step', {
          workflowId: run.head.id,
          workflow: run.head.workflow,
          err,
        })
      })
      .finally(() => {
        this.#active.delete(execution)
        if (this.#wanted) this.wake()
      })
    this.#active.add(execution)
  }

  /** A trace of its own, since the run may outlive that of its request by days; linked to it. */
  #traced(tracer: Tracer, run: StoredRun): Promise<void> {
    const { id, workflow: name } = run.head
    const { data } = run
    const cause = readTraceparent(typeof data['trace'] === 'string' ? data['trace'] : undefined)
    const attributes = { 'gatehouse.workflow': name, 'gatehouse.run.id': id, 'gatehouse.attempt': run.attempt }
    const start = { name: `workflow ${name}`, kind: 'consumer', parent: 'none', run: id, attributes } as const
    return tracer.span({ ...start, links: cause === undefined ? [] : [cause] }, () => this.#execute(run))
  }

  async #execute(run: StoredRun): Promise<void> {
    const { runs, subjects, log, clock, observer } = this.#services
    observer.claimed(clock().getTime() - run.due.getTime())
    const keeper = new ClaimKeeper(runs, claimOf(run), this.#limits, log)
    const parts = {
      services: this.#services,
      use: this.#use,
      retries: this.#limits.retries,
      leaseMillis: this.#limits.leaseMillis,
      stopping: () => this.#stopping,
      commit: (step: StepCommit) => this.#commit(step),
      saveRows: (rows: readonly AuditEntry[]) => this.#saveRows(run.head.id, rows),
    }
    let begun = false
    try {
      await subjects.run(run.head.subject.toLowerCase(), async () => {
        begun = true
        if (this.#stopping) await runs.release(claimOf(run))
        else await new ClaimedRunExecution(run, parts).execute(() => keeper.step())
      })
    } catch (error) {
      if (begun) throw error
      // Direct calls of the same subject keep it busy.
      await runs.release(claimOf(run))
    } finally {
      keeper.end()
    }
  }

  /** Waits for a database that is briefly unavailable, as long as the claim may last. */
  async #commit(step: StepCommit): Promise<RunState | 'void'> {
    const { runs, crash } = this.#services
    crash('before-commit')
    for (let tries = 1; ; tries++) {
      try {
        const state = await runs.commit(step)
        crash('after-commit')
        return state
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error
        // After a commit with an unknown outcome, the same rows exist already.
        if (error.code === 'VERSION_MISMATCH' || (error.code === 'CONFLICT' && tries > 1)) {
          await this.#saveRows(step.run.id, step.effects.audit ?? [])
          return 'void'
        }
        const passing = error.code === 'TARGET_UNREACHABLE' || error.code === 'TARGET_TIMEOUT'
        if (!passing || tries >= commitTries) throw error
        await delay(Math.min(100 * 2 ** tries, this.#limits.leaseMillis / 10))
      }
    }
  }

  async #saveRows(run: string, rows: readonly AuditEntry[]): Promise<void> {
    if (rows.length === 0) return
    try {
      await this.#services.audit.append(rows)
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'CONFLICT') return
      this.#services.log.error('audit could not be written', { workflowId: run, rows: rows.length, err: error })
    }
  }
}
