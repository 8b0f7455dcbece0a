import type { SqlClient } from '#database/sql-client.ts'
import { columns, dateOrNull, deletedAtOnce, deleteInParts, statement, withoutNulls } from '#database/statement.ts'
import { assertStorable, isStorable, optionalText } from '#database/text-keys.ts'

const maxListed = 500

/** One due time of a scheduled job. */
export interface JobTime {
  readonly job: string
  readonly due: Date
}

/** The right to run a job for one due time. Void once the lease has expired and another worker has claimed it. */
export interface JobClaim extends JobTime {
  readonly fence: number
}

interface JobRun extends JobTime {
  readonly state: 'running' | 'done' | 'failed'
  readonly worker: string
  readonly started: Date
  readonly ended?: Date
  readonly error?: string
}

interface JobRow extends Pick<JobRun, 'state' | 'worker'> {
  readonly name: string
  readonly due: number
  readonly started: number
  readonly ended: number | null
  readonly error: string | null
}

interface ClaimValues {
  readonly name: string
  readonly due: number
  readonly fence: number
}

/** Only one worker runs a job for each due time. */
export class JobRunStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /**
   * Undefined for all callers but the first, unless that one's lease has expired; also undefined before the due time by
   * the database's clock.
   */
  async begin({ job, due }: JobTime, worker: string, leaseMillis: number): Promise<JobClaim | undefined> {
    assertStorable('name of the job', job)
    const values = { name: job, due: due.getTime(), worker, lease: leaseMillis }
    const row = await this.#client.transaction((tx) => begin.first(tx, values))
    return row && { job, due, fence: row.fence }
  }

  /** False when another worker has claimed it. */
  async renew(claim: JobClaim, leaseMillis: number): Promise<boolean> {
    const values = { ...claimValues(claim), lease: leaseMillis }
    return (await this.#client.transaction((tx) => renew.run(tx, values))) > 0
  }

  /** False when another worker has claimed it. */
  async end(claim: JobClaim, error?: string): Promise<boolean> {
    const state = error === undefined ? 'done' : 'failed'
    const values = { ...claimValues(claim), state, error: optionalText(error) } as const
    return (await this.#client.transaction((tx) => end.run(tx, values))) > 0
  }

  /** Running jobs whose lease has expired; `begin` takes them over. */
  async abandoned(limit: number): Promise<readonly JobTime[]> {
    const rows = await findAbandoned.all(this.#client, { limit })
    return rows.map(({ name, due }) => ({ job: name, due: new Date(due) }))
  }

  /** Latest first, at most 500. */
  async list(job: string, limit: number): Promise<readonly JobRun[]> {
    if (!isStorable(job)) return []
    const bounded = Math.max(1, Math.min(Math.trunc(limit) || 1, maxListed))
    return (await findByName.all(this.#client, { name: job, limit: bounded })).map(fromRow)
  }

  /** Removes runs that ended before then; returns how many. */
  async prune(before: Date): Promise<number> {
    return await deleteInParts(this.#client, deleteEndedBefore, { before: before.getTime() })
  }
}

const claimValues = ({ job, due, fence }: JobClaim): ClaimValues => ({ name: job, due: due.getTime(), fence })

const fromRow = ({ name, due, started, ended, ...same }: JobRow): JobRun =>
  withoutNulls({ job: name, ...same, due: new Date(due), started: new Date(started), ended: dateOrNull(ended) })

/** The first call inserts; another takes over when the lease has expired. Nothing is written before the due time. */
const begin = statement<{ name: string; due: number; worker: string; lease: number }, { fence: number }>(
  (on) => `insert into job_runs (name, due, state, worker, fence, lease_until, started)
    select cast(:name as text), cast(:due as bigint), 'running', cast(:worker as text), 1,
      ${on.now} + cast(:lease as bigint), ${on.now}
    where cast(:due as bigint) <= ${on.now}
    on conflict (name, due) do update
    set worker = excluded.worker, fence = job_runs.fence + 1, lease_until = excluded.lease_until,
      started = excluded.started
    where job_runs.state = 'running' and job_runs.lease_until <= ${on.now}
    returning fence`,
)
const claimed = `name = :name and due = :due and fence = :fence and state = 'running'`
const renew = statement<ClaimValues & { readonly lease: number }>(
  (on) => `update job_runs set lease_until = ${on.now} + :lease where ${claimed}`,
)
const end = statement<ClaimValues & Pick<JobRow, 'state' | 'error'>>(
  (on) => `update job_runs set state = :state, error = :error, ended = ${on.now} where ${claimed}`,
)
const findAbandoned = statement<{ limit: number }, Pick<JobRow, 'name' | 'due'>>(
  (on) => `select name, due from job_runs
    where state = 'running' and lease_until <= ${on.now} order by lease_until limit :limit`,
)
const findByName = statement<{ name: string; limit: number }, JobRow>(
  `select ${columns(['name', 'due', 'state', 'worker', 'started', 'ended', 'error'])} from job_runs
   where name = :name order by due desc limit :limit`,
)
const deleteEndedBefore = statement<{ before: number }>(
  `delete from job_runs where (name, due) in
     (select name, due from job_runs where ended is not null and ended < :before limit ${deletedAtOnce})`,
)
