import type { JobMeter } from '#engine/jobs/job-meter.ts'
import { type ConfiguredJob, runJob } from '#engine/jobs/job-run.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Schedule } from '#kernel/schedule.ts'
import type { Closable } from '#kernel/scope.ts'
import type { JobClaim, JobRunStore, JobTime } from '#storage/job-run-store.ts'

export interface ScheduledJob extends ConfiguredJob {
  readonly schedule: Schedule
}

export interface SchedulerParts {
  readonly store: JobRunStore
  /** Tells this process from the others. */
  readonly worker: string
  readonly clock: Clock
  readonly log: Logger
  readonly meter: JobMeter
}

export interface SchedulerTimes {
  /** How long a run belongs to a process that does not answer any more. */
  readonly leaseMillis: number
  /** How often to look for runs whose process died. */
  readonly sweepMillis: number
  /** How often to look whether something is due, whatever the clock does meanwhile. */
  readonly idleMillis: number
  /** How soon to look again when something is due that cannot begin yet. */
  readonly retryMillis: number
  /** How long closing waits for runs under way before it tells them to end, and how long it waits then. */
  readonly drainMillis: number
  readonly graceMillis: number
}

const defaultTimes: SchedulerTimes = {
  leaseMillis: 60_000,
  sweepMillis: 15_000,
  idleMillis: 5_000,
  retryMillis: 1_000,
  drainMillis: 10_000,
  graceMillis: 5_000,
}

const abandonedAtOnce = 100
/** An abandoned run of a job that no configuration has known for so long is nobody's. */
const forgottenMillis = 24 * 3600_000

interface Entry extends ScheduledJob {
  /** The latest due time that there is nothing more to do for; undefined until the store was asked. */
  settled: Date | undefined
  running: Promise<void> | undefined
}

/**
 * Runs the jobs of a configuration when they are due. Of all processes one runs a job for a due time; a run of a process
 * that died is taken over. Of due times that passed while nobody was there, or while the job was still running, the latest
 * is made up for. A job that never ran has nothing to make up for.
 */
export class JobScheduler implements Closable {
  readonly #entries: readonly Entry[]
  readonly #parts: SchedulerParts
  readonly #times: SchedulerTimes
  readonly #closing = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #turn: Promise<unknown> = Promise.resolve()
  #closed = false
  #nextSweep = 0

  constructor(jobs: readonly ScheduledJob[], parts: SchedulerParts, times: Partial<SchedulerTimes> = {}) {
    this.#entries = jobs.map((job) => ({ ...job, settled: undefined, running: undefined }))
    this.#parts = parts
    this.#times = { ...defaultTimes, ...times }
  }

  start(): this {
    if (this.#entries.length > 0) this.#rest(0)
    return this
  }

  /** Begins nothing more. Runs that do not end in time are left to another process. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#turn
    const running = this.#entries.flatMap(({ running }) => running ?? [])
    const drain = setTimeout(() => this.#closing.abort(), this.#times.drainMillis)
    await Promise.all(running).finally(() => clearTimeout(drain))
    await Promise.allSettled(this.#entries.map(({ job }) => job.close?.()))
  }

  /** Begins what is due; settles with how long to rest. The runs go on by themselves. */
  async turn(): Promise<number> {
    const { clock, log } = this.#parts
    let pending = false
    for (const entry of this.#entries) {
      if (this.#closed) return 0
      try {
        if ((await this.#consider(entry)) === 'pending') pending = true
      } catch (err) {
        log.warn('a job could not be begun and is tried again', { job: entry.name, err })
        pending = true
      }
    }
    await this.#sweep()
    if (pending) return this.#times.retryMillis
    const now = clock()
    const waits = this.#entries.flatMap(({ schedule }) => {
      const next = schedule.next(now)
      return next === undefined ? [] : [next.getTime() - now.getTime()]
    })
    return Math.max(1, Math.min(this.#times.idleMillis, ...waits))
  }

  /** All runs that are under way in this process have ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#entries.map(({ running }) => running))
  }

  #rest(millis: number): void {
    this.#timer = setTimeout(() => {
      this.#turn = this.turn()
        .catch((err: unknown) => {
          this.#parts.log.error('jobs could not be looked after', { err })
          return this.#times.retryMillis
        })
        .then((rest) => {
          if (!this.#closed) this.#rest(rest)
        })
    }, millis)
    this.#timer.unref()
  }

  async #consider(entry: Entry): Promise<'pending' | 'settled'> {
    const { store, worker, clock } = this.#parts
    const due = entry.schedule.latest(clock())
    if (due === undefined || (entry.settled !== undefined && due <= entry.settled)) return 'settled'
    if (entry.running !== undefined) return 'pending'
    const [last] = await store.list(entry.name, 1)
    if (last === undefined ? entry.settled === undefined : last.due >= due) {
      entry.settled = due
      return 'settled'
    }
    if (last?.state === 'running') return 'pending'
    const claim = await store.begin({ job: entry.name, due }, worker, this.#times.leaseMillis)
    // Another was faster, which the next turn sees, or it is too early by the clock of the store.
    if (claim === undefined) return 'pending'
    entry.settled = due
    this.#begin(entry, claim)
    return 'settled'
  }

  #begin(entry: Entry, claim: JobClaim): void {
    const { store, log, meter } = this.#parts
    const { leaseMillis, graceMillis } = this.#times
    const parts = { store, log, meter, leaseMillis, graceMillis, closing: this.#closing.signal }
    entry.running = runJob(entry, claim, parts).finally(() => {
      entry.running = undefined
    })
  }

  async #sweep(): Promise<void> {
    const { store, log } = this.#parts
    if (performance.now() < this.#nextSweep) return
    this.#nextSweep = performance.now() + this.#times.sweepMillis
    try {
      for (const time of await store.abandoned(abandonedAtOnce)) await this.#takeOver(time)
    } catch (err) {
      log.warn('abandoned jobs could not be looked for', { err })
    }
  }

  async #takeOver(time: JobTime): Promise<void> {
    const { store, worker, clock } = this.#parts
    const entry = this.#entries.find(({ name }) => name === time.job)
    if (this.#closed || entry?.running !== undefined) return
    const forgotten = entry === undefined && clock().getTime() - time.due.getTime() > forgottenMillis
    if (entry === undefined && !forgotten) return
    const claim = await store.begin(time, worker, this.#times.leaseMillis)
    if (claim === undefined) return
    if (entry === undefined) await store.end(claim, 'its process died, and no such job is configured any more')
    else this.#begin(entry, claim)
  }
}
