/** One due time of a scheduled job. */
export interface JobTime {
  readonly job: string
  readonly due: Date
}

/** The right to run a job for one due time. Void once the lease has run out and another has taken it. */
export interface JobClaim extends JobTime {
  readonly fence: number
}

export interface JobRun extends JobTime {
  readonly state: 'running' | 'done' | 'failed'
  readonly worker: string
  readonly started: Date
  readonly ended?: Date
  readonly error?: string
}

/** Each due time of a job is run by one of all who try, whatever the number of processes. */
export interface JobRunStore {
  /**
   * Undefined for all but the first, unless whoever runs it has let the lease run out; and before its time by the clock
   * of the store.
   */
  begin(time: JobTime, worker: string, leaseMillis: number): Promise<JobClaim | undefined>
  /** False when another has taken it. */
  renew(claim: JobClaim, leaseMillis: number): Promise<boolean>
  /** False when another has taken it. */
  end(claim: JobClaim, error?: string): Promise<boolean>
  /** Those whose runner has let the lease run out; `begin` takes them. */
  abandoned(limit: number): Promise<readonly JobTime[]>
  /** Latest first, at most 500. */
  list(job: string, limit: number): Promise<readonly JobRun[]>
  /** Forgets those that ended before then; how many. */
  prune(before: Date): Promise<number>
}
