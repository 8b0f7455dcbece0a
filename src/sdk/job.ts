import type { Issues } from '#kernel/issues.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import type { Chores } from '#sdk/chores.ts'
import type { ModuleHost } from '#sdk/host.ts'
import type { ParameterTable } from '#sdk/parameters.ts'
import type { Params } from '#sdk/params.ts'
import type { ParseContext } from '#sdk/parse-context.ts'

export interface JobContext {
  /** The time that the run is for; of all processes one runs it. */
  readonly due: Date
  /** More than 1 when whoever ran it before died, so that part of the work may be done already. */
  readonly attempt: number
  readonly log: Logger
  /** Aborted when the run has taken too long, when another process has taken it over, and at the end of the process. */
  readonly signal: AbortSignal
}

/** Work that is done at times. What it throws is logged and counted, and the next due time is another try. */
export interface Job extends Closable {
  /** Bears being run again for the same due time.. */
  run(context: JobContext): Promise<JobOutcome>
}

/** Figures for the log, such as how many mails were written. */
export type JobOutcome = Readonly<Record<string, number>>

export interface JobHost extends ModuleHost {
  readonly chores: Chores
}

export interface PreparedJob {
  readonly className: string
  create(host: JobHost): Promise<Job>
}

export interface JobModule {
  readonly className: string
  readonly aliases: readonly string[]
  readonly parameters: ParameterTable
  prepare(params: Params, issues: Issues, context: ParseContext): PreparedJob
}

export interface JobDefinition<C> {
  readonly className: string
  readonly aliases?: readonly string[]
  readonly parameters: ParameterTable
  /** Pure: no I/O, no clock. Reports every problem into `issues`. */
  parse(params: Params, issues: Issues, context: ParseContext): C
  create(config: C, host: JobHost): Job | Promise<Job>
}

export function defineJob<C>(definition: JobDefinition<C>): JobModule {
  const { className, parameters } = definition
  return {
    className,
    aliases: definition.aliases ?? [],
    parameters,
    prepare: (params, issues, context) => {
      const config = definition.parse(params, issues, context)
      return { className, create: async (host) => definition.create(config, host) }
    },
  }
}
