import { z } from 'zod'
import type { HealthReport } from '#server/health.ts'
import type { MetricSnapshot } from '#server/workers/combined-metrics.ts'

/** What a worker can be asked, and the answers. */
export interface Answers {
  metrics: readonly MetricSnapshot[]
  /** Whether requests can be served; a problem otherwise. */
  ready: true
  health: HealthReport
  /** Whether the event loop runs. */
  alive: true
}

export type Question = keyof Answers

/** What a supervisor sends. */
export type SupervisorMessage =
  | { readonly kind: 'question'; readonly id: number; readonly question: Question }
  /** The metrics of all workers, for the worker that asked. */
  | { readonly kind: 'metrics'; readonly metrics: readonly MetricSnapshot[] }

/** What a worker sends. */
export type WorkerMessage =
  /** It serves requests; `lines` are for standard error, once for all workers. */
  | { readonly kind: 'started'; readonly lines: readonly string[] }
  /** The hash of the configuration that it serves from now on. */
  | { readonly kind: 'serves'; readonly configuration: string }
  /** It asks for the metrics of all workers. */
  | { readonly kind: 'asksMetrics' }
  | { readonly kind: 'answer'; readonly id: number; readonly value: Answers[Question] }
  | { readonly kind: 'problem'; readonly id: number; readonly problem: string }

/** The environment variable with the settings of a worker, in JSON. */
export const workerVariable = 'GATEHOUSE_WORKER'

const settingsSchema = z.strictObject({
  worker: z.int().min(1),
  /** Where the supervisor serves metrics. */
  metricsAddress: z.string().optional(),
  /** The supervisor writes the log to a terminal, or not. */
  logText: z.boolean(),
  logColors: z.boolean(),
})

/** What a worker learns from its supervisor, beside the arguments of the command. */
export type WorkerSettings = z.infer<typeof settingsSchema>

/** Undefined if this process is not a worker. Removed from the environment once it is read, since it is for no one else. */
export function takeWorkerSettings(environment: Record<string, string | undefined>): WorkerSettings | undefined {
  const text = environment[workerVariable]
  if (text === undefined) return undefined
  delete environment[workerVariable]
  return settingsSchema.parse(JSON.parse(text))
}
