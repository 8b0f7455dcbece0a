import type { JobClaim, JobRun, JobRunStore, JobTime } from '#storage/job-run-store.ts'

interface Row extends JobTime {
  state: JobRun['state']
  worker: string
  fence: number
  leaseUntil: number
  started: Date
  ended?: Date
  error?: string
}

/** Keeps job runs as the real stores do, by a clock that the test moves. */
export class MemoryJobRunStore implements JobRunStore {
  readonly rows: Row[] = []
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  async begin({ job, due }: JobTime, worker: string, leaseMillis: number): Promise<JobClaim | undefined> {
    const now = this.#now()
    if (due.getTime() > now) return undefined
    const row = this.#row({ job, due })
    if (row === undefined) {
      this.rows.push({
        job,
        due,
        state: 'running',
        worker,
        fence: 1,
        leaseUntil: now + leaseMillis,
        started: new Date(now),
      })
      return { job, due, fence: 1 }
    }
    if (row.state !== 'running' || row.leaseUntil > now) return undefined
    Object.assign(row, { worker, fence: row.fence + 1, leaseUntil: now + leaseMillis })
    return { job, due, fence: row.fence }
  }

  async renew(claim: JobClaim, leaseMillis: number): Promise<boolean> {
    const row = this.#held(claim)
    if (row !== undefined) row.leaseUntil = this.#now() + leaseMillis
    return row !== undefined
  }

  async end(claim: JobClaim, error?: string): Promise<boolean> {
    const row = this.#held(claim)
    if (row === undefined) return false
    Object.assign(row, { state: error === undefined ? 'done' : 'failed', ended: new Date(this.#now()) })
    if (error !== undefined) row.error = error
    return true
  }

  async abandoned(limit: number): Promise<readonly JobTime[]> {
    const now = this.#now()
    return this.rows
      .filter(({ state, leaseUntil }) => state === 'running' && leaseUntil <= now)
      .slice(0, limit)
      .map(({ job, due }) => ({ job, due }))
  }

  async list(job: string, limit: number): Promise<readonly JobRun[]> {
    const own = this.rows.filter((row) => row.job === job)
    return own.sort((a, b) => b.due.getTime() - a.due.getTime()).slice(0, limit)
  }

  async prune(before: Date): Promise<number> {
    const kept = this.rows.filter(({ ended }) => ended === undefined || ended >= before)
    return this.rows.splice(0, this.rows.length, ...kept).length - kept.length
  }

  #row({ job, due }: JobTime): Row | undefined {
    return this.rows.find((row) => row.job === job && row.due.getTime() === due.getTime())
  }

  #held(claim: JobClaim): Row | undefined {
    const row = this.#row(claim)
    return row?.state === 'running' && row.fence === claim.fence ? row : undefined
  }
}
