import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'

/**
 * Notifies workers that runs can be claimed. Too many notifications do no harm. When one is lost, the regular look of the
 * workers finds the run a little later.
 */
export interface WakeUp {
  /** Called after the commit that made the runs ready. */
  committed(runs: readonly string[]): void
}

export interface RunWakeUp extends WakeUp {
  /** Calls `wake` from now on. Rejects when other processes cannot be heard; this process is heard anyway. */
  start(wake: () => void): Promise<void>
  close(): Promise<void>
}

/** Wakes the workers of this process. */
export class InProcessWakeUp implements RunWakeUp {
  #wake: (() => void) | undefined

  committed(): void {
    this.#wake?.()
  }

  async start(wake: () => void): Promise<void> {
    this.#wake = wake
  }

  async close(): Promise<void> {
    this.#wake = undefined
  }
}

/** The result of a transaction, and the runs that it made ready. */
export interface ReadyRuns<T> {
  readonly value: T
  readonly ready: readonly string[]
}

export async function transactionWithWakeUp<T>(
  client: SqlClient,
  wake: WakeUp | undefined,
  work: (tx: DatabaseTransaction) => Promise<ReadyRuns<T>>,
): Promise<T> {
  const { value, ready } = await client.transaction(work)
  if (ready.length > 0) wake?.committed(ready)
  return value
}
