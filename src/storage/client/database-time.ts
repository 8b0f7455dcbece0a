import { type RawBuilder, sql } from 'kysely'
import type { SqlReader } from '#storage/client/sql-client.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'
import type { When } from '#storage/timer-store.ts'

/** The present by the clock of the database, in milliseconds since 1970: one clock for all processes. */
export const databaseNow = perDialect(
  (dialect): RawBuilder<number> =>
    dialect === 'sqlite'
      ? sql`cast(unixepoch('subsec') * 1000 as integer)`
      : sql`cast(extract(epoch from now()) * 1000 as bigint)`,
)

/** A time as a transaction that began at `now` has it. */
export const timeOf = (when: When, now: number): number =>
  Math.trunc('at' in when ? when.at.getTime() : now + when.inMillis)

/** The values of a time in a statement that knows the present itself. */
export interface WhenValues {
  readonly due_at: number | null
  readonly due_in: number | null
}

export const whenValues = (when: When): WhenValues =>
  'at' in when ? { due_at: when.at.getTime(), due_in: null } : { due_at: null, due_in: Math.trunc(when.inMillis) }

/** The time that `whenValues` stands for. */
export const whenSql = (
  now: RawBuilder<number>,
  dueAt: RawBuilder<number | null>,
  dueIn: RawBuilder<number | null>,
): RawBuilder<number> => sql`coalesce(cast(${dueAt} as bigint), ${now} + cast(${dueIn} as bigint))`

const present = perDialect((dialect) =>
  fixed<object, { now: number }>(dialect, (db) => ({
    compile: () => sql<{ now: number }>`select ${databaseNow(dialect)} as now`.compile(db),
  })),
)

export async function readNow(reader: SqlReader): Promise<number> {
  const [row] = await reader.query(present(reader.dialect)({}))
  return row?.now ?? 0
}
