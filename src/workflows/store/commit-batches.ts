import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type ReadyRuns, transactionWithWakeUp, type WakeUp } from './wake-up.ts'

const maxUnits = 64

interface BatchWork<Unit, Result> {
  /** How many batches are committed at the same time, so that one which waits for a lock does not delay all others. */
  readonly atOnce: number
  /** Returns the results in the order of the units. Undefined, and nothing may be committed, if one needs its own commit. */
  together(tx: DatabaseTransaction, units: readonly Unit[]): Promise<ReadyRuns<readonly Result[]> | undefined>
  alone(tx: DatabaseTransaction, unit: Unit): Promise<ReadyRuns<Result>>
}

interface Waiting<Unit, Result> {
  readonly unit: Unit
  readonly resolve: (result: Result) => void
  readonly reject: (reason: unknown) => void
}

/**
 * Commits changes of different runs together: those that arrive while others are being committed share the next
 * transaction. Most of the cost of a small change is the statements around it.
 */
export class CommitBatches<Unit, Result> {
  readonly #client: SqlClient
  readonly #wake: WakeUp | undefined
  readonly #work: BatchWork<Unit, Result>
  #waiting: Waiting<Unit, Result>[] = []
  #active = 0

  constructor(client: SqlClient, wake: WakeUp | undefined, work: BatchWork<Unit, Result>) {
    this.#client = client
    this.#wake = wake
    this.#work = work
  }

  /** Durable when it settles. */
  commit(unit: Unit): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    this.#waiting.push({ unit, resolve, reject })
    this.#next()
    return promise
  }

  #next(): void {
    if (this.#active >= this.#work.atOnce || this.#waiting.length === 0) return
    this.#active++
    const batch = this.#waiting.splice(0, maxUnits)
    void this.#commit(batch).finally(() => {
      this.#active--
      this.#next()
    })
  }

  async #commit(batch: readonly Waiting<Unit, Result>[]): Promise<void> {
    const [only] = batch
    if (batch.length === 1 && only !== undefined) return this.#alone(only)
    let results: readonly Result[]
    try {
      results = await transactionWithWakeUp(this.#client, this.#wake, async (tx) => {
        const units = batch.map(({ unit }) => unit)
        const done = await this.#work.together(tx, units)
        if (done === undefined) throw new MixedBatch()
        return done
      })
    } catch (error) {
      if (isUnknown(error)) for (const { reject } of batch) reject(error)
      // One of them can't be committed. Each alone gets its own result.
      else await Promise.all(batch.map((waiting) => this.#alone(waiting)))
      return
    }
    for (const [i, result] of results.entries()) batch[i]?.resolve(result)
  }

  #alone({ unit, resolve, reject }: Waiting<Unit, Result>): Promise<void> {
    const { alone } = this.#work
    return transactionWithWakeUp(this.#client, this.#wake, (tx) => alone(tx, unit)).then(resolve, reject)
  }
}

/** Undoes a batch. */
class MixedBatch extends Error {}

/**
 * The batch may have been committed; the callers know what to do when they try again. A batch that waited too long for
 * the lock of one run was not.
 */
const isUnknown = (error: unknown): boolean => error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE'
