import { sql } from 'kysely'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { databaseNow, timeOf, type WhenValues, whenSql, whenValues } from '#storage/client/database-time.ts'
import type { SqlClient, SqlTransaction } from '#storage/client/sql-client.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed, fixedInserts } from '#storage/sql/queries.ts'
import type { ClaimedTimer, NewTimer, TimerClaim, TimerStore, When } from '#storage/timer-store.ts'

const columns = ['id', 'kind', 'due', 'run', 'approval', 'data', 'fence', 'lease_until'] as const

type TimerRow = {
  readonly [K in (typeof columns)[number]]: K extends 'due' | 'fence' | 'lease_until'
    ? number
    : K extends 'run' | 'approval'
      ? string | null
      : string
}

const statements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  return {
    insert: fixedInserts<TimerRow>(dialect, columns, (db, rows) => db.insertInto('timers').values(rows)),
    claim: fixed<{ limit: number; lease: number }, TimerRow>(dialect, (db, at) =>
      db
        .with('free', (query) =>
          query
            .selectFrom('timers')
            .select('id')
            .where('due', '<=', now)
            .where('lease_until', '<=', now)
            .orderBy('due')
            .orderBy('id')
            .limit(at('limit'))
            .$if(dialect === 'postgres', (locked) => locked.forUpdate().skipLocked()),
        )
        .updateTable('timers')
        .set((eb) => ({ fence: eb('fence', '+', 1), lease_until: sql<number>`${now} + ${at('lease')}` }))
        .where('id', 'in', (query) => query.selectFrom('free').select('id'))
        .returning(columns),
    ),
    done: fixed<TimerClaim, unknown>(dialect, (db, at) =>
      db.deleteFrom('timers').where('id', '=', at('id')).where('fence', '=', at('fence')),
    ),
    release: fixed<TimerClaim & WhenValues, unknown>(dialect, (db, at) =>
      db
        .updateTable('timers')
        .set({ due: whenSql(now, at('due_at'), at('due_in')), lease_until: 0 })
        .where('id', '=', at('id'))
        .where('fence', '=', at('fence')),
    ),
    endOfApproval: fixed<{ approval: string }, unknown>(dialect, (db, at) =>
      db.deleteFrom('timers').where('approval', '=', at('approval')),
    ),
    endOfRun: fixed<{ run: string }, unknown>(dialect, (db, at) =>
      db.deleteFrom('timers').where('run', '=', at('run')),
    ),
  }
})

export async function insertTimers(tx: SqlTransaction, timers: readonly NewTimer[], now: number): Promise<void> {
  const rows = timers.map(
    ({ id, kind, due, run, approval, data }): TimerRow => ({
      id,
      kind,
      due: timeOf(due, now),
      run: run ?? null,
      approval: approval ?? null,
      data: JSON.stringify(data ?? {}),
      fence: 0,
      lease_until: 0,
    }),
  )
  for (const query of statements(tx.dialect).insert(rows)) await tx.run(query)
}

/** Throws VERSION_MISMATCH when one of them is gone, or is another's by now. */
export async function finishTimers(tx: SqlTransaction, timers: readonly TimerClaim[]): Promise<void> {
  for (const { id, fence } of timers) {
    if ((await tx.run(statements(tx.dialect).done({ id, fence }))) > 0) continue
    throw new GatewayError('VERSION_MISMATCH', `the timer ${id} is gone or another's`)
  }
}

export const endTimersOfApproval = (tx: SqlTransaction, approval: string): Promise<number> =>
  tx.run(statements(tx.dialect).endOfApproval({ approval }))

export const endTimersOfRun = (tx: SqlTransaction, run: string): Promise<number> =>
  tx.run(statements(tx.dialect).endOfRun({ run }))

export class SqlTimerStore implements TimerStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof statements> {
    return statements(this.#client.dialect)
  }

  async claim(limit: number, leaseMillis: number): Promise<readonly ClaimedTimer[]> {
    const query = this.#statements.claim({ limit, lease: leaseMillis })
    const rows = await this.#client.transaction((tx) => tx.query(query))
    return rows.sort((a, b) => a.due - b.due).map(toClaimed)
  }

  async done({ id, fence }: TimerClaim): Promise<boolean> {
    return (await this.#client.transaction((tx) => tx.run(this.#statements.done({ id, fence })))) > 0
  }

  async release({ id, fence }: TimerClaim, due: When): Promise<boolean> {
    const query = this.#statements.release({ id, fence, ...whenValues(due) })
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }
}

const toClaimed = ({ id, kind, due, run, approval, data, fence }: TimerRow): ClaimedTimer => ({
  id,
  fence,
  kind,
  due: new Date(due),
  ...(run === null ? {} : { run }),
  ...(approval === null ? {} : { approval }),
  data: JSON.parse(data) as JsonObject,
})
