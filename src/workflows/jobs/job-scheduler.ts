import { setTimeout as delay } from 'node:timers/promises'
import type { Configuration } from '#config/configuration/configuration.ts'
import { createAt, createEach } from '#config/configuration/create-at.ts'
import type { Clock } from '#kernel/clock.ts'
import type { LogFields, Logger } from '#kernel/logger.ts'
import type { Schedule } from '#kernel/schedule.ts'
import type { Closable } from '#kernel/scope.ts'
import { shownReason } from '#kernel/secret-values.ts'
import { type SpanStart, tracer } from '#kernel/tracing.ts'
import type { HostFor } from '#sdk/host/host.ts'
import type { Job, JobHost, JobOutcome } from '#sdk/job/job.ts'
import type { JobClaim, JobRunStore, JobTime } from '#workflows/store/job-run-store.ts'
import type { MaintenanceTasks } from './maintenance-access.ts'

/** `left`: the process ended or lost the run, and another takes it over. */
type JobRunOutcome = 'done' | 'failed' | 'left'

export interface JobMeter {
  ended(job: string, outcome: JobRunOutcome, millis: number): void
}

/** What a process that runs jobs needs. */
export interface JobServices {
  readonly store: JobRunStore
  /** Identifies this process. */
  readonly worker: string
  readonly meter: JobMeter
}

interface SchedulerParts extends JobServices {
  readonly clock: Clock
  readonly log: Logger
}

interface JobParts extends SchedulerParts {
  readonly maintenance: MaintenanceTasks
  /** How long a lease lasts before other processes count this one as dead. */
  readonly leaseMillis: number
  readonly hostFor: HostFor<JobHost>
}

/** Creates the jobs of a configuration and schedules them until it is closed. Throws if one can't be created. */
export async function startJobs({ jobs }: Pick<Configuration, 'jobs'>, parts: JobParts): Promise<JobScheduler> {
  const { store, worker, meter, maintenance, clock, log, leaseMillis, hostFor } = parts
  const created: ScheduledJob[] = []
  try {
    await createEach(jobs, async ([name, { job: module, at, schedule, timeoutMillis }]) => {
      const host = { ...hostFor(name, module.className, at), maintenance }
      const job = await createAt(at, () => module.create(host))
      created.push({ name, schedule, timeoutMillis, job })
    })
  } catch (error) {
    await Promise.allSettled(created.map(({ job }) => job.close?.()))
    throw error
  }
  // A job is less urgent than a run.
  const times = { leaseMillis: 2 * leaseMillis, sweepMillis: leaseMillis / 2 }
  return new JobScheduler(created, { store, worker, clock, log, meter }, times).start()
}

export interface ScheduledJob extends ConfiguredJob {
  readonly schedule: Schedule
}

interface SchedulerTimes {
  /** How long a run belongs to a process that no longer answers. */
  readonly leaseMillis: number
  /** How often to look for runs of dead processes. */
  readonly sweepMillis: number
  /** The longest wait between two looks, in case the clock changes. */
  readonly idleMillis: number
  /** How soon to look again if a due run can't begin yet. */
  readonly retryMillis: number
  /** How long closing waits for running jobs before it aborts them, and how long after that. */
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
/** After this time an abandoned run of an unknown job belongs to no process. */
const forgottenMillis = 24 * 3600_000

interface Entry extends ScheduledJob {
  /** The latest due time that is finished; undefined before the first read of the store. */
  settled: Date | undefined
  running: Promise<void> | undefined
}

/**
 * Runs the jobs of a configuration when they are due. Only one process runs a job for a due time, and another takes
 * over the run of a process that died. If due times passed during downtime or a long run, the latest is made up
 * for. A new job has nothing to make up for.
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

  /** Starts no further runs. Runs that do not end in time are left to another process. */
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

  /** Starts due runs; resolves with how long to rest. The runs continue in the background. */
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

  /** Resolves when all runs in this process have ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#entries.map(({ running }) => running))
  }

  #rest(millis: number): void {
    this.#timer = setTimeout(() => {
      this.#turn = this.turn()
        .catch((err: unknown) => {
          this.#parts.log.error('could not check for due jobs', { err })
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
    // Another process was faster, which the next turn sees, or it is too early by the clock of the store.
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

/** A job of the configuration, created. */
interface ConfiguredJob {
  readonly name: string
  readonly timeoutMillis: number
  readonly job: Job
}

interface JobRunParts {
  readonly store: JobRunStore
  readonly log: Logger
  readonly meter: JobMeter
  readonly leaseMillis: number
  /** How long an aborted run may continue before it counts as ended. */
  readonly graceMillis: number
  /** Aborted when the process, or the configuration, ends. */
  readonly closing: AbortSignal
}

/** A run that crashed three workers would crash a fourth. */
const maxAttempts = 3
const endTries = 5

type Ending = 'time' | 'lost' | 'closing'
type Settled = { readonly outcome: JobOutcome } | { readonly error: unknown } | 'stuck'

/** Runs a job for one due time and stores the result. Never rejects. */
async function runJob(configured: ConfiguredJob, claim: JobClaim, parts: JobRunParts): Promise<void> {
  const { name } = configured
  const log = parts.log.with({ job: name, due: claim.due })
  const started = performance.now()
  const ended = (outcome: JobRunOutcome): void => parts.meter.ended(name, outcome, performance.now() - started)
  if (claim.fence > maxAttempts) {
    log.error('job given up: each of its runners has died', { attempts: claim.fence - 1 })
    await writeEnd(claim, parts, log, 'each of its runners has died')
    return ended('failed')
  }
  const { settled, ending } = await execute(configured, claim, parts, log)
  const fields: LogFields = { millis: Math.round(performance.now() - started) }
  if (settled !== 'stuck' && 'outcome' in settled) {
    log.info('job done', { ...fields, ...settled.outcome })
    await writeEnd(claim, parts, log)
    return ended('done')
  }
  if (ending === 'lost' || ending === 'closing') {
    log.warn('job left to another process', { ...fields, reason: ending })
    return ended('left')
  }
  const message = ending === 'time' ? `it took longer than ${configured.timeoutMillis / 1000} s` : messageOf(settled)
  log.error('job failed', { ...fields, reason: message, ...(settled === 'stuck' ? {} : { err: settled.error }) })
  await writeEnd(claim, parts, log, message)
  ended('failed')
}

const jobSpan = (name: string): SpanStart => ({
  name: `job ${name}`,
  kind: 'consumer',
  parent: 'none',
  attributes: { 'gatehouse.job': name },
})

/** Waits until it settles, or until the grace period after its abort ends. */
async function execute(
  { name, job, timeoutMillis }: ConfiguredJob,
  claim: JobClaim,
  parts: JobRunParts,
  log: Logger,
): Promise<{ readonly settled: Settled; readonly ending: Ending | undefined }> {
  const stop = new AbortController()
  let ending: Ending | undefined
  const end = (why: Ending): void => {
    ending ??= why
    stop.abort(new Error(`the run of the job has to end: ${why}`))
  }
  const limit = setTimeout(() => end('time'), timeoutMillis)
  const onClosing = (): void => end('closing')
  parts.closing.addEventListener('abort', onClosing, { once: true })
  if (parts.closing.aborted) onClosing()
  const renewal = keepLease(claim, parts, log, () => end('lost'))
  let grace: NodeJS.Timeout | undefined
  const stuck = new Promise<Settled>((resolve) => {
    stop.signal.addEventListener('abort', () => {
      grace = setTimeout(() => resolve('stuck'), parts.graceMillis)
    })
  })
  const work = (async (): Promise<Settled> => {
    try {
      const run = (): Promise<JobOutcome> => job.run({ due: claim.due, attempt: claim.fence, log, signal: stop.signal })
      return { outcome: await (tracer === undefined ? run() : tracer.span(jobSpan(name), run)) }
    } catch (error) {
      return { error }
    }
  })()
  try {
    return { settled: await Promise.race([work, stuck]), ending }
  } finally {
    clearTimeout(limit)
    clearTimeout(grace)
    clearInterval(renewal)
    parts.closing.removeEventListener('abort', onClosing)
  }
}

/** The run is lost if another process has it, or may have it because the lease could not be extended in time. */
function keepLease(claim: JobClaim, parts: JobRunParts, log: Logger, lost: () => void): NodeJS.Timeout {
  let renewed = performance.now()
  const renew = async (): Promise<void> => {
    const asked = performance.now()
    try {
      if (await parts.store.renew(claim, parts.leaseMillis)) renewed = asked
      else lost()
    } catch (err) {
      log.warn('could not renew the lease of a job', { err })
      if (performance.now() - renewed >= parts.leaseMillis) lost()
    }
  }
  const timer = setInterval(() => void renew(), parts.leaseMillis / 3)
  timer.unref()
  return timer
}

/** Waits for a database that is briefly unavailable, since a run without a stored end is repeated. */
async function writeEnd(claim: JobClaim, parts: JobRunParts, log: Logger, error?: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      if (!(await parts.store.end(claim, error))) log.warn('another process has taken over the job meanwhile')
      return
    } catch (err) {
      if (tries === endTries || parts.closing.aborted) {
        log.error('the end of a job was not written down, so it is run again', { err })
        return
      }
    }
    await delay(Math.min(250 * 2 ** tries, parts.leaseMillis / 10))
  }
}

const messageOf = (settled: Exclude<Settled, { outcome: JobOutcome }>): string =>
  settled === 'stuck' ? 'it did not end' : shownReason(settled.error)
