import { escalationTimer } from '#engine/approvals/approval-desk.ts'
import { GrantLoop } from '#engine/grants/grant-loop.ts'
import type { RuntimeServices } from '#engine/runtime.ts'
import { registerRunTimers } from '#engine/workflow/run-timers.ts'
import { RunWorker, type WorkerLimits } from '#engine/workflow/run-worker.ts'
import { TimerLoop } from '#engine/workflow/timer-loop.ts'
import type { Closable } from '#kernel/scope.ts'
import type { RunningConfiguration } from '#server/reload.ts'
import type { RunWakeUp } from '#storage/runs/wake-up.ts'
import type { TimerStore } from '#storage/timer-store.ts'

export interface DurableParts {
  readonly services: RuntimeServices
  readonly running: RunningConfiguration
  readonly timers: TimerStore
  readonly dispatcher: Pick<RunWakeUp, 'start' | 'close'>
  readonly limits: Partial<WorkerLimits>
  /** The lease of timers, if it differs from the default. */
  readonly lease?: { readonly leaseMillis?: number }
}

const dispatcherAgainMillis = 30_000

/** The background work of this process: stored runs, timers, expiring access. */
export class DurableWork implements Closable {
  readonly #parts: DurableParts
  readonly #worker: RunWorker
  readonly #timers: TimerLoop
  readonly #grants: GrantLoop
  #again: NodeJS.Timeout | undefined
  #closed = false

  constructor(parts: DurableParts) {
    const { services, running, timers, limits, lease = {} } = parts
    const { log } = services
    this.#parts = parts
    this.#worker = new RunWorker(services, (work) => running.use(({ workflows }) => work(workflows.workflows)), limits)
    this.#timers = new TimerLoop({ store: timers, log, ...lease })
    registerRunTimers(this.#timers, services.runs)
    this.#timers.on(escalationTimer, (timer) => running.use(({ workflows }) => workflows.approvals.escalate(timer)))
    const revokeDue = (signal: AbortSignal) => running.use(({ workflows }) => workflows.revokeDue(signal))
    this.#grants = new GrantLoop({ revokeDue, log })
  }

  async start(): Promise<void> {
    const { services } = this.#parts
    const freed = await services.runs.recover()
    if (freed > 0) services.log.info('runs are taken up that the last process left', { runs: freed })
    void this.#dispatch()
    this.#worker.start()
    this.#timers.start()
    this.#grants.start()
  }

  /** Aborts running steps. Another process, or the next start, continues the rest. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#again)
    await Promise.all([this.#worker.close(), this.#timers.close(), this.#grants.close()])
    await this.#parts.dispatcher.close()
  }

  /** The workers look by themselves as well, so nothing waits for it. */
  async #dispatch(): Promise<void> {
    const { dispatcher, services } = this.#parts
    try {
      await dispatcher.start(() => this.#worker.wake())
    } catch (err) {
      services.log.warn('other processes cannot be notified; they poll for runs', { err })
      if (!this.#closed) this.#again = setTimeout(() => void this.#dispatch(), dispatcherAgainMillis)
    }
  }
}
