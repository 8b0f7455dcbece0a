import type { ReconciliationStore } from '#features/reconciliation/store/reconciliation-store.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import { PlanWorker, type ReconciliationRuntime } from './plan-worker.ts'

interface PlanLoopParts {
  readonly store: ReconciliationStore
  readonly clock: Clock
  readonly log: Logger
  /** Identifies this process. */
  readonly worker: string
  /** Runs `work` with the current configuration, which stays open until then; it is asked whether that is still the current one. */
  use(work: (runtime: ReconciliationRuntime, isCurrent: () => boolean) => Promise<void>): Promise<void>
}

interface PlanLoopTimes {
  readonly leaseMillis: number
  readonly idleMillis: number
}

const defaultTimes: PlanLoopTimes = { leaseMillis: 60_000, idleMillis: 2_000 }

/** Plans that one process works on; a comparison of large systems must not make all others wait. */
const atOnce = 2
const maintainEveryMillis = 10 * 60_000
const dayMillis = 24 * 3600_000
/** How long a plan may wait for a person: later its differences are outdated. */
const expiryDays = 7
const planDays = 30
const plansKept = 20
const reportDays = 730

/** Looks for plans that are due, and works on them. Of several processes, one works on a plan. */
export class PlanLoop implements Closable {
  readonly #parts: PlanLoopParts
  readonly #times: PlanLoopTimes
  readonly #worker: PlanWorker
  readonly #stop = new AbortController()
  readonly #active = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> = Promise.resolve()
  #maintainAt = 0

  constructor(parts: PlanLoopParts, times: Partial<PlanLoopTimes> = {}) {
    this.#parts = parts
    this.#times = { ...defaultTimes, ...times }
    this.#worker = new PlanWorker({ ...parts, leaseMillis: this.#times.leaseMillis })
  }

  async start(): Promise<void> {
    await this.#parts.store.recover()
    this.#rest(0)
  }

  /** Leaves the plans to other processes, or to the next start. */
  async close(): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#timer)
    await this.#round
    await Promise.allSettled(this.#active)
  }

  #rest(millis: number): void {
    if (this.#stop.signal.aborted) return
    this.#timer = setTimeout(() => {
      this.#round = this.#look()
        .catch((err: unknown) => this.#parts.log.warn('plans of reconciliations could not be looked for', { err }))
        .then(() => this.#rest(this.#times.idleMillis))
    }, millis)
    this.#timer.unref()
  }

  async #look(): Promise<void> {
    const { store, worker } = this.#parts
    if (performance.now() >= this.#maintainAt) {
      this.#maintainAt = performance.now() + maintainEveryMillis
      await this.#maintain()
    }
    while (this.#active.size < atOnce && !this.#stop.signal.aborted) {
      const plan = await store.claim(worker, this.#times.leaseMillis)
      if (plan === undefined) return
      const work = this.#parts
        .use((runtime, isCurrent) =>
          this.#worker.work(plan, runtime, { signal: this.#stop.signal, isOver: () => !isCurrent() }),
        )
        .catch((err: unknown) => {
          this.#parts.log.warn('a plan is left until its lease ends', { plan: plan.id, err })
        })
        .finally(() => this.#active.delete(work))
      this.#active.add(work)
    }
  }

  async #maintain(): Promise<void> {
    const { store, clock } = this.#parts
    const ago = (days: number): Date => new Date(clock().getTime() - days * dayMillis)
    await store.expire(ago(expiryDays))
    await store.prune({ plans: ago(planDays), plansKept, reports: ago(reportDays) })
  }
}
