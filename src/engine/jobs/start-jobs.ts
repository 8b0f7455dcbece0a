import type { JobMeter } from '#engine/jobs/job-meter.ts'
import { JobScheduler, type ScheduledJob } from '#engine/jobs/job-scheduler.ts'
import type { HostFor } from '#engine/module-host.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Chores } from '#sdk/job/chores.ts'
import type { Job } from '#sdk/job/job.ts'
import type { Configuration } from '#sdk/module/configuration.ts'
import type { JobRunStore } from '#storage/job-run-store.ts'

/** What a process that runs jobs needs. */
export interface JobServices {
  readonly store: JobRunStore
  /** Identifies this process. */
  readonly worker: string
  readonly meter: JobMeter
}

export interface JobParts extends JobServices {
  readonly chores: Chores
  readonly clock: Clock
  readonly log: Logger
  /** How long a lease lasts before other processes count this one as dead. */
  readonly leaseMillis: number
  readonly hostFor: HostFor
}

/** Creates the jobs of a configuration and schedules them until it is closed. Throws if one can't be created. */
export async function startJobs({ jobs }: Pick<Configuration, 'jobs'>, parts: JobParts): Promise<JobScheduler> {
  const { store, worker, meter, chores, clock, log, leaseMillis, hostFor } = parts
  const created: ScheduledJob[] = []
  try {
    for (const [name, { job, at, schedule, timeoutMillis }] of jobs) {
      created.push({
        name,
        schedule,
        timeoutMillis,
        job: await create(at, () => job.create({ ...hostFor(name, job.className, at), chores })),
      })
    }
  } catch (error) {
    await Promise.allSettled(created.map(({ job }) => job.close?.()))
    throw error
  }
  // A job is less urgent than a run.
  const times = { leaseMillis: 2 * leaseMillis, sweepMillis: leaseMillis / 2 }
  return new JobScheduler(created, { store, worker, clock, log, meter }, times).start()
}

async function create(at: string, make: () => Promise<Job>): Promise<Job> {
  try {
    return await make()
  } catch (cause) {
    throw new Error(`${at}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}
