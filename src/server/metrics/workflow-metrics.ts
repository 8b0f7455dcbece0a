import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { ClientTokenStore } from '#features/scim/tokens/client-token-store.ts'
import type { Logger } from '#kernel/logger.ts'
import type { MailFigures, MailStore } from '#mail/mail-store.ts'
import { currentExemplar, histogramWithExemplars } from '#server/metrics/exemplar.ts'
import { LabelBound } from '#server/metrics/label-bound.ts'
import type { JobMeter } from '#workflows/jobs/job-scheduler.ts'
import type { StepObserver } from '#workflows/steps/workflow-services.ts'
import type { ApprovalFigures, ApprovalStore } from '#workflows/store/approval-store.ts'
import type { GrantStore } from '#workflows/store/grant-store.ts'
import type { RunFigures, RunStore } from '#workflows/store/run-store.ts'

/** The source of figures that are the same for all processes. */
export interface FigureStores {
  readonly runs: Pick<RunStore, 'figures'>
  readonly approvals: Pick<ApprovalStore, 'figures'>
  readonly mails: Pick<MailStore, 'figures'>
  readonly grants: Pick<GrantStore, 'due'>
  readonly clientTokens: Pick<ClientTokenStore, 'expiring'>
}

interface Figures {
  readonly runs: RunFigures
  readonly approvals: ApprovalFigures
  readonly mails: MailFigures
  readonly grantsDue: number
  readonly expiringTokens: number
}

/** Several scrapers, and the gauges of one scrape, share one read. */
const keptMillis = 2000
/** How long a scrape waits for a database that is down. */
const readMillis = 5000
/** Grants beyond this number are not counted. */
const maxGrants = 500

/** Metrics of workflows and jobs. Counts in the database are read at each scrape. */
export function createWorkflowMetrics(registry: Registry, bound = new LabelBound()) {
  const registers = [registry]
  const steps = histogramWithExemplars(registry, {
    name: 'gatehouse_workflow_step_seconds',
    help: 'Time to execute a task of a workflow, by task type and outcome.',
    labelNames: ['task_type', 'outcome'],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 1, 5, 30, 120],
  })
  const queued = new Histogram({
    name: 'gatehouse_workflow_queue_seconds',
    help: 'How long runs had been due when this process took them up.',
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120, 600],
    registers,
  })
  const jobRuns = new Counter({
    name: 'gatehouse_job_runs_total',
    help: 'Runs of scheduled jobs in this process, by outcome: done, failed, or left to another process.',
    labelNames: ['job', 'outcome'],
    registers,
  })
  const jobSeconds = new Histogram({
    name: 'gatehouse_job_seconds',
    help: 'Time to run a scheduled job.',
    labelNames: ['job'],
    buckets: [0.01, 0.1, 1, 10, 60, 600, 3600],
    registers,
  })
  const observer: StepObserver = {
    executed: ({ taskType, outcome, millis }) =>
      steps.observe({
        labels: bound.of({ task_type: taskType, outcome }),
        value: millis / 1000,
        ...currentExemplar(),
      }),
    claimed: (waitedMillis) => queued.observe(Math.max(0, waitedMillis) / 1000),
  }
  const jobs: JobMeter = {
    ended(job, outcome, millis) {
      jobRuns.inc(bound.of({ job, outcome }))
      jobSeconds.observe(bound.of({ job }), millis / 1000)
    },
  }
  return {
    observer,
    jobs,
    /** From now on a scrape returns these figures; NaN if they can't be read. */
    watch: (stores: FigureStores, log: Logger): void => watch(registry, new FigureReader(stores, log)),
  }
}

export type WorkflowMetrics = ReturnType<typeof createWorkflowMetrics>

const seconds = (millis: number | undefined): number => (millis ?? 0) / 1000

const single: readonly (readonly [name: string, help: string, value: (figures: Figures) => number])[] = [
  [
    'gatehouse_workflow_oldest_ready_seconds',
    'How long the step that is due longest has been due; 0 when none is.',
    ({ runs }) => seconds(runs.oldestReadyMillis),
  ],
  [
    'gatehouse_workflow_oldest_incident_seconds',
    'How long the oldest incident has been waiting for an administrator.',
    ({ runs }) => seconds(runs.oldestIncidentMillis),
  ],
  [
    'gatehouse_unfinished_changes',
    'Changes that failed part way, and are tried again or need an operator.',
    ({ runs }) => runs.unfinished,
  ],
  ['gatehouse_approvals_open', 'Approvals without a decision.', ({ approvals }) => approvals.open],
  [
    'gatehouse_approvals_oldest_seconds',
    'How long the oldest of them has been open.',
    ({ approvals }) => seconds(approvals.oldestMillis),
  ],
  ['gatehouse_mails_queued', 'Mails that are still to be sent.', ({ mails }) => mails.queued],
  ['gatehouse_mails_failed', 'Mails that were given up.', ({ mails }) => mails.failed],
  [
    'gatehouse_mails_unknown',
    'Mails that were sent without an answer from the mail server.',
    ({ mails }) => mails.unknown,
  ],
  [
    'gatehouse_mails_oldest_seconds',
    'How long the mail that is due longest has been due.',
    ({ mails }) => seconds(mails.oldestMillis),
  ],
  [
    'gatehouse_grants_due',
    `Timed access that is to be taken back and was not yet, counted up to ${maxGrants}.`,
    ({ grantsDue }) => grantsDue,
  ],
  [
    'gatehouse_scim_tokens_expiring',
    'Tokens of SCIM clients that expire within two weeks.',
    (figures) => figures.expiringTokens,
  ],
]

const runStates = ['ready', 'running', 'waiting', 'incident'] as const

function watch(registry: Registry, reader: FigureReader): void {
  const registers = [registry]
  new Gauge({
    name: 'gatehouse_workflow_runs',
    help: 'Runs that have not ended, by state.',
    labelNames: ['state'],
    registers,
    async collect() {
      const figures = await reader.read()
      for (const state of runStates) this.set({ state }, figures?.runs[state] ?? Number.NaN)
    },
  })
  for (const [name, help, value] of single) {
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const figures = await reader.read()
        this.set(figures === undefined ? Number.NaN : value(figures))
      },
    })
  }
}

class FigureReader {
  readonly #stores: FigureStores
  readonly #log: Logger
  #kept: Promise<Figures | undefined> | undefined
  #until = 0

  constructor(stores: FigureStores, log: Logger) {
    this.#stores = stores
    this.#log = log
  }

  /** Undefined if they can't be read now. */
  read(): Promise<Figures | undefined> {
    if (this.#kept !== undefined && performance.now() < this.#until) return this.#kept
    this.#until = performance.now() + keptMillis
    this.#kept = this.#ask().catch((err: unknown) => {
      this.#log.warn('the figures of workflows cannot be read', { err })
      return undefined
    })
    return this.#kept
  }

  async #ask(): Promise<Figures> {
    const { runs, approvals, mails, grants, clientTokens } = this.#stores
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer after ${readMillis} ms`)), readMillis)
    })
    const asked = Promise.all([
      runs.figures(),
      approvals.figures(),
      mails.figures(),
      grants.due(maxGrants),
      clientTokens.expiring(),
    ])
    const [ofRuns, ofApprovals, ofMails, due, expiringTokens] = await Promise.race([asked, late]).finally(() =>
      clearTimeout(timer),
    )
    return { runs: ofRuns, approvals: ofApprovals, mails: ofMails, grantsDue: due.length, expiringTokens }
  }
}
