import type { ChangeRecorder, UserChange } from '#identity/user-directory.ts'
import type { SqlTransaction } from '#storage/client/sql-client.ts'

/** A client, as those who change a directory need it. */
export interface Transactions {
  transaction<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T>
}

/** The same transactions, in which a recorder is told at the end what was changed; nothing when nothing was. */
export function recordedBy(client: Transactions, record: ChangeRecorder | undefined): Transactions {
  if (record === undefined) return client
  return {
    transaction: (work) =>
      client.transaction(async (tx) => {
        const result = await work(tx)
        if (isChanges(result)) await record(tx, result)
        return result
      }),
  }
}

const isChanges = (result: unknown): result is readonly UserChange[] => Array.isArray(result) && result.length > 0
