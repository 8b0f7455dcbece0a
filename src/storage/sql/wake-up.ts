import type { SqlClient, SqlTransaction } from '#storage/client/sql-client.ts'

/**
 * Tells workers that runs may be claimed. It may be told too often; when it is not heard, the sweep of the workers finds
 * the run a little later.
 */
export interface WakeUp {
  /** Inside the transaction that makes the runs ready, which may run more than once. */
  inTransaction(tx: SqlTransaction, runs: readonly string[]): Promise<void>
  /** After its commit, in this process. */
  committed?(runs: readonly string[]): void
}

/** What a transaction gives, and the runs that may be claimed from now on. */
export interface Woken<T> {
  readonly value: T
  readonly ready: readonly string[]
}

export async function transactionWithWakeUp<T>(
  client: SqlClient,
  wake: WakeUp | undefined,
  work: (tx: SqlTransaction) => Promise<Woken<T>>,
): Promise<T> {
  const { value, ready } = await client.transaction(async (tx) => {
    const done = await work(tx)
    if (done.ready.length > 0) await wake?.inTransaction(tx, done.ready)
    return done
  })
  if (ready.length > 0) wake?.committed?.(ready)
  return value
}
