import type { RunState } from '#domain/run.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { commitStep, commitTogether, isPlainStep, type StepCommit } from '#storage/runs/run-commit.ts'
import { transactionWithWakeUp, type WakeUp } from '#storage/runs/wake-up.ts'

/** So that a batch which waits for a lock does not delay all others. */
const atOnce = 2
const maxSteps = 64

interface Waiting {
  readonly step: StepCommit
  readonly resolve: (state: RunState) => void
  readonly reject: (reason: unknown) => void
}

/**
 * Commits steps of different runs together: those that arrive while others are being committed share the next
 * transaction. Most of the cost of a step is the statements around it.
 */
export class StepBatches {
  readonly #client: SqlClient
  readonly #wake: WakeUp | undefined
  #waiting: Waiting[] = []
  #active = 0

  constructor(client: SqlClient, wake: WakeUp | undefined) {
    this.#client = client
    this.#wake = wake
  }

  /** See `RunStore.commit`. */
  commit(step: StepCommit): Promise<RunState> {
    if (!isPlainStep(step)) return this.#alone(step)
    const { promise, resolve, reject } = Promise.withResolvers<RunState>()
    this.#waiting.push({ step, resolve, reject })
    this.#next()
    return promise
  }

  #next(): void {
    if (this.#active >= atOnce || this.#waiting.length === 0) return
    this.#active++
    const batch = this.#waiting.splice(0, maxSteps)
    void this.#commit(batch).finally(() => {
      this.#active--
      this.#next()
    })
  }

  async #commit(batch: readonly Waiting[]): Promise<void> {
    const [only] = batch
    if (batch.length === 1 && only !== undefined) return this.#settle(only)
    let states: ReadonlyMap<string, RunState>
    try {
      states = await transactionWithWakeUp(this.#client, this.#wake, async (tx) => {
        const done = await commitTogether(
          tx,
          batch.map(({ step }) => step),
        )
        if (done === undefined) throw new MixedBatch()
        return done
      })
    } catch (error) {
      if (isUnknown(error)) for (const { reject } of batch) reject(error)
      // One of them can't be committed. Each alone gets its own result.
      else await Promise.all(batch.map((waiting) => this.#settle(waiting)))
      return
    }
    for (const { step, resolve } of batch) resolve(states.get(step.run.id) ?? step.next.state)
  }

  #settle({ step, resolve, reject }: Waiting): Promise<void> {
    return this.#alone(step).then(resolve, reject)
  }

  #alone(step: StepCommit): Promise<RunState> {
    return transactionWithWakeUp(this.#client, this.#wake, (tx) => commitStep(tx, step))
  }
}

/** Undoes a batch. */
class MixedBatch extends Error {}

/**
 * The batch may have been committed; the callers know what to do when they try again. A batch that waited too long for
 * the lock of one run was not.
 */
const isUnknown = (error: unknown): boolean => error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE'
