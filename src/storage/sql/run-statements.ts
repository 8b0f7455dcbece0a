import { sql } from 'kysely'
import { databaseNow, type WhenValues, whenSql } from '#storage/client/database-time.ts'
import type { SqlDialect } from '#storage/client/sql-client.ts'
import type { RunState } from '#storage/run-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { type Builder, fixed, type Place } from '#storage/sql/queries.ts'
import type { ClaimedRow, NewRunValues, SummaryRow } from '#storage/sql/run-records.ts'
import { summaryColumns } from '#storage/sql/run-records.ts'

/** States in the text of a statement, since partial indexes serve only what the text itself says. */
const ready = sql.lit<RunState>('ready')
const running = sql.lit<RunState>('running')

interface Fenced {
  readonly id: string
  readonly fence: number
}

interface Leave extends Fenced, WhenValues {
  readonly state: RunState
  readonly data: string
  readonly secret: string | null
  readonly attempt: number
  readonly touched: number
  readonly incident: string | null
  readonly final: number
  /** 1 where the run's timers go with it; only PostgreSQL looks. */
  readonly ends_timers: number
  /** 1 where a run whose end was asked for may take this state. */
  readonly despite_cancel: number
}

interface Keep extends Fenced {
  readonly data: string
  readonly secret: string | null
  readonly touched: number
  readonly lease: number
}

/** PostgreSQL can do both in one journey. */
function endingTimers(dialect: SqlDialect, db: Builder, at: Place<Leave>) {
  if (dialect === 'sqlite') return db
  return db.with('ended_timers', (query) =>
    query
      .deleteFrom('timers')
      .where('run', '=', at('id'))
      .where(sql<boolean>`cast(${at('ends_timers')} as bigint) = 1`),
  )
}

/** Statements that move runs from state to state. All times are the database's. */
export const runStatements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  return {
    insert: fixed<NewRunValues, { created: number }>(dialect, (db, at) =>
      db
        .insertInto('runs')
        .values({
          id: at('id'),
          name: at('name'),
          definition: at('definition'),
          state: at('state'),
          subject: at('subject'),
          subject_key: at('subject_key'),
          requestor: at('requestor'),
          requestor_key: at('requestor_key'),
          caller: at('caller'),
          requestor_identity: at('requestor_identity'),
          caller_identity: at('caller_identity'),
          subject_identity: at('subject_identity'),
          reason: at('reason'),
          request_id: at('request_id'),
          data: at('data'),
          signal: null,
          secret: at('secret'),
          attempt: at('claims'),
          fence: at('claims'),
          worker: null,
          lease_until: sql<number>`coalesce(${now} + cast(${at('lease')} as bigint), 0)`,
          due: whenSql(now, at('due_at'), at('due_in')),
          deadline: whenSql(now, at('deadline_at'), at('deadline_in')),
          access_ends: at('access_ends'),
          incident: at('incident'),
          cancel: null,
          touched: at('touched'),
          created: now,
          updated: now,
          ended: sql<number | null>`case when cast(${at('final')} as bigint) = 1 then ${now} end`,
        })
        .returning('created'),
    ),
    /**
     * Of a subject only the first that is ready, and none while a worker executes one. A run whose lease ran out is the
     * one that is running, so it goes first by itself; but one that was executed within its call may not be the only one.
     */
    claim: fixed<{ worker: string; lease: number; limit: number }, ClaimedRow>(dialect, (db, at) =>
      db
        .with('lost', (query) =>
          query
            .selectFrom('runs as lost')
            .select('lost.seq')
            .where('lost.state', '=', running)
            .where('lost.lease_until', '<=', now)
            .where(({ not, exists, selectFrom }) =>
              not(
                exists(
                  selectFrom('runs as other')
                    .select('other.seq')
                    .whereRef('other.subject_key', '=', 'lost.subject_key')
                    .where('other.state', '=', running)
                    .where('other.worker', 'is not', null)
                    .whereRef('other.seq', '<>', 'lost.seq'),
                ),
              ),
            )
            .orderBy('lost.lease_until')
            .limit(at('limit'))
            .$if(dialect === 'postgres', (locked) => locked.forUpdate().skipLocked()),
        )
        .with('fresh', (query) =>
          query
            .selectFrom('runs as run')
            .select('run.seq')
            .where('run.state', '=', ready)
            .where('run.due', '<=', now)
            .where(({ not, exists, selectFrom }) =>
              not(
                exists(
                  selectFrom('runs as earlier')
                    .select('earlier.seq')
                    .whereRef('earlier.subject_key', '=', 'run.subject_key')
                    .where('earlier.state', '=', ready)
                    .whereRef('earlier.seq', '<', 'run.seq'),
                ),
              ),
            )
            .where(({ not, exists, selectFrom }) =>
              not(
                exists(
                  selectFrom('runs as other')
                    .select('other.seq')
                    .whereRef('other.subject_key', '=', 'run.subject_key')
                    .where('other.state', '=', running)
                    .where('other.worker', 'is not', null),
                ),
              ),
            )
            .orderBy('run.due')
            .orderBy('run.seq')
            .limit(at('limit'))
            .$if(dialect === 'postgres', (locked) => locked.forUpdate().skipLocked()),
        )
        .updateTable('runs')
        .set((eb) => ({
          state: running,
          fence: eb('fence', '+', 1),
          attempt: eb('attempt', '+', 1),
          worker: at('worker'),
          lease_until: sql<number>`${now} + ${at('lease')}`,
          updated: now,
        }))
        .where(
          'seq',
          'in',
          sql<number>`(select seq from (select seq from lost union all select seq from fresh) as due limit ${at('limit')})`,
        )
        .returning([...summaryColumns, 'data', 'signal', 'secret']),
    ),
    renew: fixed<Fenced & { lease: number }, unknown>(dialect, (db, at) =>
      db
        .updateTable('runs')
        .set({ lease_until: sql<number>`${now} + ${at('lease')}` })
        .where('id', '=', at('id'))
        .where('fence', '=', at('fence'))
        .where('state', '=', running)
        .where('cancel', 'is', null),
    ),
    release: fixed<Fenced, { id: string }>(dialect, (db, at) =>
      db
        .updateTable('runs')
        .set((eb) => ({ state: ready, attempt: eb('attempt', '-', 1), worker: null, lease_until: 0, updated: now }))
        .where('id', '=', at('id'))
        .where('fence', '=', at('fence'))
        .where('state', '=', running)
        .returning('id'),
    ),
    recover: fixed<object, { id: string }>(dialect, (db) =>
      db.updateTable('runs').set({ lease_until: 0 }).where('state', '=', running).returning('id'),
    ),
    /** The claim goes on. */
    keep: fixed<Keep, { updated: number }>(dialect, (db, at) =>
      db
        .updateTable('runs')
        .set({
          data: at('data'),
          signal: null,
          secret: at('secret'),
          attempt: 1,
          touched: at('touched'),
          lease_until: sql<number>`${now} + ${at('lease')}`,
          updated: now,
        })
        .where('id', '=', at('id'))
        .where('fence', '=', at('fence'))
        .where('state', '=', running)
        .where('cancel', 'is', null)
        .returning('updated'),
    ),
    /** The claim ends, on PostgreSQL with the run's timers where it is said so. `following` is the run of the same subject that comes next, if any. */
    leave: fixed<Leave, { updated: number; following: string | null }>(dialect, (db, at) =>
      endingTimers(dialect, db, at)
        .updateTable('runs')
        .set({
          state: at('state'),
          data: at('data'),
          signal: null,
          secret: at('secret'),
          attempt: at('attempt'),
          worker: null,
          lease_until: 0,
          due: whenSql(now, at('due_at'), at('due_in')),
          incident: at('incident'),
          touched: at('touched'),
          updated: now,
          ended: sql<number | null>`case when cast(${at('final')} as bigint) = 1 then ${now} end`,
        })
        .where('id', '=', at('id'))
        .where('fence', '=', at('fence'))
        .where('state', '=', running)
        .where((eb) => eb.or([eb('cancel', 'is', null), sql<boolean>`cast(${at('despite_cancel')} as bigint) = 1`]))
        .returning('updated')
        .returning((eb) =>
          eb
            .selectFrom('runs as next')
            .select('next.id')
            .whereRef('next.subject_key', '=', 'runs.subject_key')
            .where('next.state', '=', ready)
            .whereRef('next.seq', '<>', 'runs.seq')
            .orderBy('next.seq')
            .limit(1)
            .as('following'),
        ),
    ),
    /** Whoever changes a run that nobody executes, or something that belongs to it, locks it first. */
    lock: fixed<{ id: string }, SummaryRow & { now: number }>(dialect, (db, at) =>
      db
        .selectFrom('runs')
        .select([...summaryColumns, now.as('now')])
        .where('id', '=', at('id'))
        .$if(dialect === 'postgres', (locked) => locked.forNoKeyUpdate()),
    ),
    goOn: fixed<{ id: string; signal: string | null; data: string | null }, unknown>(dialect, (db, at) =>
      db
        .updateTable('runs')
        .set((eb) => ({
          state: ready,
          fence: eb('fence', '+', 1),
          attempt: 0,
          due: now,
          signal: sql<string | null>`coalesce(cast(${at('signal')} as text), signal)`,
          data: sql<string>`coalesce(cast(${at('data')} as text), data)`,
          incident: null,
          updated: now,
        }))
        .where('id', '=', at('id')),
    ),
    end: fixed<{ id: string; state: RunState; cancel: string }, { following: string | null }>(dialect, (db, at) =>
      db
        .updateTable('runs')
        .set((eb) => ({
          state: at('state'),
          fence: eb('fence', '+', 1),
          cancel: at('cancel'),
          signal: null,
          secret: null,
          updated: now,
          ended: now,
        }))
        .where('id', '=', at('id'))
        .returning((eb) =>
          eb
            .selectFrom('runs as next')
            .select('next.id')
            .whereRef('next.subject_key', '=', 'runs.subject_key')
            .where('next.state', '=', ready)
            .whereRef('next.seq', '<>', 'runs.seq')
            .orderBy('next.seq')
            .limit(1)
            .as('following'),
        ),
    ),
    /** One that was executed within its call, and so held up nobody. */
    forget: fixed<Fenced, unknown>(dialect, (db, at) =>
      db.deleteFrom('runs').where('id', '=', at('id')).where('fence', '=', at('fence')).where('state', '=', running),
    ),
    askToEnd: fixed<{ id: string; cancel: string }, unknown>(dialect, (db, at) =>
      db
        .updateTable('runs')
        .set({ cancel: at('cancel'), updated: now })
        .where('id', '=', at('id'))
        .where('state', '=', running),
    ),
  }
})
