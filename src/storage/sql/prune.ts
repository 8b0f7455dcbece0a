import type { SqlClient, SqlQuery } from '#storage/client/sql-client.ts'

/** Rows that one transaction removes, so that others do not wait long. */
export const pruneAtOnce = 1000

/** Runs a statement that removes at most `pruneAtOnce` rows until it removes fewer; how many in all. */
export async function pruneInParts(client: SqlClient, query: SqlQuery<unknown>): Promise<number> {
  let pruned = 0
  for (;;) {
    const some = await client.transaction((tx) => tx.run(query))
    pruned += some
    if (some < pruneAtOnce) return pruned
  }
}
