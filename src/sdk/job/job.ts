import type { Directory } from '#identity/directory.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module/module.ts'
import type { TargetSource } from '#sdk/target/target.ts'
import type { RunStarter } from '#sdk/workflow/workflow.ts'

/** One run of a job. */
export interface JobContext {
  /** The due time; only one process runs it. */
  readonly due: Date
  /** More than 1 if an earlier process died, so that part of the work may be done already. */
  readonly attempt: number
  readonly log: Logger
  /** Aborted when the run takes too long, when another process has claimed it, and at the end of the process. */
  readonly signal: AbortSignal
}

/** Scheduled work. Errors are logged and counted, and the next due time is another try. */
export interface Job extends Closable {
  /** Must tolerate being run again for the same due time. */
  run(context: JobContext): Promise<JobOutcome>
}

/** Figures for the log, such as how many mails were written. */
export type JobOutcome = Readonly<Record<string, number>>

/** What a job may use of Gatehouse. */
export interface JobHost extends ModuleHost {
  readonly targets: TargetSource
  readonly directory: Pick<Directory, 'search'>
  readonly runs: RunStarter
}

/** A job whose parameters are checked. */
export type PreparedJob = Prepared<Job, JobHost>
/** A kind of job, as the catalog lists it. */
export type JobModule = Module<Job, JobHost>

/** Describes a kind of job. `H` is the host of the job's room; the gateway's own host has the members of all of them. */
export const defineJob = <C, H extends JobHost = JobHost>(definition: ModuleDefinition<C, Job, H>): JobModule =>
  defineModule(definition)
