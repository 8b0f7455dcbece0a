import type { SqlTransaction } from '#storage/client/sql-client.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed, fixedLists } from '#storage/sql/queries.ts'

/** How long a change may have been under way that was computed from the name before. */
const rememberedMillis = 60 * 60 * 1000

const statements = perDialect((dialect) => ({
  remember: fixed<{ entry: number; key: string; now: number }, unknown>(dialect, (db, at) =>
    db
      .insertInto('former_names')
      .values({ entry: at('entry'), key: at('key'), time: at('now') })
      .onConflict((on) => on.columns(['entry', 'key']).doUpdateSet({ time: (eb) => eb.ref('excluded.time') })),
  ),
  forget: fixed<{ entry: number; before: number }, unknown>(dialect, (db, at) =>
    db.deleteFrom('former_names').where('entry', '=', at('entry')).where('time', '<', at('before')),
  ),
  namesOf: fixedLists<{ since: number }, number, { key: string }>(dialect, (db, at, entries) =>
    db.selectFrom('former_names').select('key').where('entry', 'in', entries).where('time', '>=', at('since')),
  ),
}))

export async function rememberName(tx: SqlTransaction, entry: number, key: string, now: number): Promise<void> {
  await tx.run(statements(tx.dialect).forget({ entry, before: now - rememberedMillis }))
  await tx.run(statements(tx.dialect).remember({ entry, key, now }))
}

/** The folded names that any of the entries had lately. */
export async function formerNames(
  tx: SqlTransaction,
  entries: readonly number[],
  now: number,
): Promise<ReadonlySet<string>> {
  const names = new Set<string>()
  for (const query of statements(tx.dialect).namesOf({ since: now - rememberedMillis }, entries)) {
    for (const { key } of await tx.query(query)) names.add(key)
  }
  return names
}
