import { setTimeout as delay } from 'node:timers/promises'
import type { JobMeter, JobRunOutcome } from '#engine/jobs/job-meter.ts'
import type { LogFields, Logger } from '#kernel/logger.ts'
import type { Job, JobOutcome } from '#sdk/job/job.ts'
import type { JobClaim, JobRunStore } from '#storage/job-run-store.ts'

/** A job of the configuration, created. */
export interface ConfiguredJob {
  readonly name: string
  readonly timeoutMillis: number
  readonly job: Job
}

export interface JobRunParts {
  readonly store: Pick<JobRunStore, 'renew' | 'end'>
  readonly log: Logger
  readonly meter: JobMeter
  readonly leaseMillis: number
  /** How long a run that was told to end may go on before it counts as ended. */
  readonly graceMillis: number
  /** Aborted when the process, or the configuration, ends. */
  readonly closing: AbortSignal
}

/** Whoever crashed three times while running it does so a fourth time. */
const maxAttempts = 3
const endTries = 5

type Ending = 'time' | 'lost' | 'closing'
type Settled = { readonly outcome: JobOutcome } | { readonly error: unknown } | 'stuck'

/** Runs a job for one due time and writes down how it ended. Never rejects. */
export async function runJob(configured: ConfiguredJob, claim: JobClaim, parts: JobRunParts): Promise<void> {
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

/** Runs it until it settles, or until it was told to end and did not do so within the grace. */
async function execute(
  { job, timeoutMillis }: ConfiguredJob,
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
      return { outcome: await job.run({ due: claim.due, attempt: claim.fence, log, signal: stop.signal }) }
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

/** The run is lost when another has it, and when it could not be prolonged for so long that another may have it. */
function keepLease(claim: JobClaim, parts: JobRunParts, log: Logger, lost: () => void): NodeJS.Timeout {
  let renewed = performance.now()
  const renew = async (): Promise<void> => {
    const asked = performance.now()
    try {
      if (await parts.store.renew(claim, parts.leaseMillis)) renewed = asked
      else lost()
    } catch (err) {
      log.warn('the lease of a job was not prolonged', { err })
      if (performance.now() - renewed >= parts.leaseMillis) lost()
    }
  }
  const timer = setInterval(() => void renew(), parts.leaseMillis / 3)
  timer.unref()
  return timer
}

/** A database that is away for a moment is waited for, since a run whose end nobody knows of is made again. */
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
  settled === 'stuck'
    ? 'it did not end'
    : settled.error instanceof Error
      ? settled.error.message
      : String(settled.error)
