import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { RunClaim } from '#workflows/record/run.ts'
import type { RunStore } from '#workflows/store/run-store.ts'

/** Another worker has claimed the run. */
export class ClaimLost extends Error {
  constructor(run: string) {
    super(`the claim of run ${run} is lost`)
    this.name = 'ClaimLost'
  }
}

export interface ClaimTimes {
  readonly leaseMillis: number
  /** The maximum duration of one step. */
  readonly stepMillis: number
}

/** Renews a claim while its steps run, and aborts the step when another worker has claimed the run. */
export class ClaimKeeper {
  readonly #store: RunStore
  readonly #claim: RunClaim
  readonly #times: ClaimTimes
  readonly #log: Logger
  readonly #renewer: NodeJS.Timeout
  #step = new AbortController()
  #limit: NodeJS.Timeout | undefined
  #lost = false

  constructor(store: RunStore, claim: RunClaim, times: ClaimTimes, log: Logger) {
    this.#store = store
    this.#claim = claim
    this.#times = times
    this.#log = log
    this.#renewer = setInterval(() => void this.#renew(), Math.max(20, times.leaseMillis / 3))
  }

  /** The signal of the step that begins now. */
  step(): AbortSignal {
    clearTimeout(this.#limit)
    this.#step = new AbortController()
    if (this.#lost) this.#step.abort(new ClaimLost(this.#claim.id))
    const { stepMillis } = this.#times
    this.#limit = setTimeout(() => {
      this.#step.abort(new GatewayError('TARGET_TIMEOUT', `the step took longer than ${stepMillis} ms`))
    }, stepMillis)
    return this.#step.signal
  }

  end(): void {
    clearInterval(this.#renewer)
    clearTimeout(this.#limit)
  }

  async #renew(): Promise<void> {
    const { id, fence } = this.#claim
    try {
      if (await this.#store.renew(this.#claim, this.#times.leaseMillis)) return
      // A cancelled run isn't renewed either, but its step may finish.
      const run = await this.#store.get(id)
      if (run?.state === 'running' && run.fence === fence) return
      this.#lost = true
      this.#step.abort(new ClaimLost(id))
    } catch (err) {
      this.#log.warn('a claim could not be renewed', { workflowId: id, err })
    }
  }
}
