import type { SqlClient } from '#storage/client/sql-client.ts'
import type { Statement } from '#storage/client/statement.ts'

/** How many rows one transaction deletes, so that others do not wait long. */
export const deletedAtOnce = 1_000

/** Runs a statement that deletes at most `deletedAtOnce` rows until it deletes fewer; returns how many in all. */
export async function deleteInParts<P extends object>(
  client: SqlClient,
  statement: Statement<P>,
  values: P,
): Promise<number> {
  let deleted = 0
  for (;;) {
    const some = await client.transaction((tx) => statement.run(tx, values))
    deleted += some
    if (some < deletedAtOnce) return deleted
  }
}
