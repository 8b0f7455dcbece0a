import { sql } from 'kysely'
import { databaseNow } from '#storage/client/database-time.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable, optionalText } from '#storage/client/text-keys.ts'
import type { JobClaim, JobRun, JobRunStore, JobTime } from '#storage/job-run-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { pruneAtOnce, pruneInParts } from '#storage/sql/prune.ts'
import { fixed } from '#storage/sql/queries.ts'

interface Fenced {
  readonly name: string
  readonly due: number
  readonly fence: number
}

interface JobRow {
  readonly name: string
  readonly due: number
  readonly state: JobRun['state']
  readonly worker: string
  readonly started: number
  readonly ended: number | null
  readonly error: string | null
}

const statements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  const running = sql.lit<'running'>('running')
  return {
    /** The first inserts; another takes over only what was let go. Nothing happens before the time. */
    begin: fixed<{ name: string; due: number; worker: string; lease: number }, { fence: number }>(
      dialect,
      (db, at) => ({
        compile: () =>
          sql<{ fence: number }>`
          insert into job_runs (name, due, state, worker, fence, lease_until, started)
          select cast(${at('name')} as text), cast(${at('due')} as bigint), 'running', cast(${at('worker')} as text), 1,
            ${now} + cast(${at('lease')} as bigint), ${now}
          where cast(${at('due')} as bigint) <= ${now}
          on conflict (name, due) do update
          set worker = excluded.worker, fence = job_runs.fence + 1, lease_until = excluded.lease_until,
            started = excluded.started
          where job_runs.state = 'running' and job_runs.lease_until <= ${now}
          returning fence`.compile(db),
      }),
    ),
    renew: fixed<Fenced & { lease: number }, unknown>(dialect, (db, at) =>
      db
        .updateTable('job_runs')
        .set({ lease_until: sql<number>`${now} + ${at('lease')}` })
        .where('name', '=', at('name'))
        .where('due', '=', at('due'))
        .where('fence', '=', at('fence'))
        .where('state', '=', running),
    ),
    end: fixed<Fenced & { state: JobRun['state']; error: string | null }, unknown>(dialect, (db, at) =>
      db
        .updateTable('job_runs')
        .set({ state: at('state'), error: at('error'), ended: now })
        .where('name', '=', at('name'))
        .where('due', '=', at('due'))
        .where('fence', '=', at('fence'))
        .where('state', '=', running),
    ),
    abandoned: fixed<{ limit: number }, { name: string; due: number }>(dialect, (db, at) =>
      db
        .selectFrom('job_runs')
        .select(['name', 'due'])
        .where('state', '=', running)
        .where('lease_until', '<=', now)
        .orderBy('lease_until')
        .limit(at('limit')),
    ),
    list: fixed<{ name: string; limit: number }, JobRow>(dialect, (db, at) =>
      db
        .selectFrom('job_runs')
        .select(['name', 'due', 'state', 'worker', 'started', 'ended', 'error'])
        .where('name', '=', at('name'))
        .orderBy('due', 'desc')
        .limit(at('limit')),
    ),
    prune: fixed<{ before: number }, unknown>(dialect, (db, at) => ({
      compile: () =>
        sql`delete from job_runs where (name, due) in
          (select name, due from job_runs where ended is not null and ended < ${at('before')} limit ${sql.lit(pruneAtOnce)})`.compile(
          db,
        ),
    })),
  }
})

export class SqlJobRunStore implements JobRunStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof statements> {
    return statements(this.#client.dialect)
  }

  async begin({ job, due }: JobTime, worker: string, leaseMillis: number): Promise<JobClaim | undefined> {
    assertStorable('name of the job', job)
    const query = this.#statements.begin({ name: job, due: due.getTime(), worker, lease: leaseMillis })
    const [row] = await this.#client.transaction((tx) => tx.query(query))
    return row && { job, due, fence: row.fence }
  }

  async renew(claim: JobClaim, leaseMillis: number): Promise<boolean> {
    const query = this.#statements.renew({ ...fenced(claim), lease: leaseMillis })
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }

  async end(claim: JobClaim, error?: string): Promise<boolean> {
    const state = error === undefined ? 'done' : 'failed'
    const query = this.#statements.end({ ...fenced(claim), state, error: optionalText(error) })
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }

  async abandoned(limit: number): Promise<readonly JobTime[]> {
    const rows = await this.#client.query(this.#statements.abandoned({ limit }))
    return rows.map(({ name, due }) => ({ job: name, due: new Date(due) }))
  }

  async list(job: string, limit: number): Promise<readonly JobRun[]> {
    if (!isStorable(job)) return []
    const bounded = Math.max(1, Math.min(Math.trunc(limit) || 1, 500))
    return (await this.#client.query(this.#statements.list({ name: job, limit: bounded }))).map(toJobRun)
  }

  prune(before: Date): Promise<number> {
    return pruneInParts(this.#client, this.#statements.prune({ before: before.getTime() }))
  }
}

const fenced = ({ job, due, fence }: JobClaim): Fenced => ({ name: job, due: due.getTime(), fence })

const toJobRun = ({ name, due, state, worker, started, ended, error }: JobRow): JobRun => ({
  job: name,
  due: new Date(due),
  state,
  worker,
  started: new Date(started),
  ...(ended === null ? {} : { ended: new Date(ended) }),
  ...(error === null ? {} : { error }),
})
