import type { Configuration, ReconciliationConfig } from '#config/configuration/configuration.ts'
import { createAt, createEach } from '#config/configuration/create-at.ts'
import type { FollowedSource } from '#features/reconciliation/changes/changed-people.ts'
import { comparePeople } from '#features/reconciliation/changes/compare-people.ts'
import { exceededLimit } from '#features/reconciliation/plan/limits.ts'
import { compare } from '#features/reconciliation/read/compare.ts'
import { answers, compareOne } from '#features/reconciliation/read/compare-one.ts'
import { type ComparedSystems, openSystems } from '#features/reconciliation/read/systems.ts'
import type { LinkStore } from '#features/reconciliation/store/link-store.ts'
import type { ReconciliationStore } from '#features/reconciliation/store/reconciliation-store.ts'
import { userIdName } from '#identity/mapping/mapped-value.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Scope } from '#kernel/scope.ts'
import type { HostFor } from '#sdk/host/host.ts'
import type { LookupHost } from '#sdk/target/target.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { ownTarget } from '#workflows/approvals/approval-audit.ts'
import { JobScheduler, type JobServices } from '#workflows/jobs/job-scheduler.ts'
import type { NewRun } from '#workflows/store/run-commit.ts'
import type { ReconciledSystems, ReconciliationRuntime } from './plan-worker.ts'
import { ReconciliationPlans } from './plans.ts'

/** What reconciliations of all configurations share. */
export interface ReconciliationServices {
  readonly reconciliations: {
    readonly store: ReconciliationStore
    readonly links: LinkStore
    /** For temporary files. */
    readonly folder: string
  }
  readonly clock: Clock
  readonly log: Logger
  readonly leaseMillis: number
  /** Present if this process runs jobs. */
  readonly jobs?: JobServices
}

interface ReconciliationParts {
  readonly configuration: Pick<Configuration, 'reconciliations' | 'targets' | 'outsideDirectory'>
  readonly services: ReconciliationServices
  /** See `RunService.prepare`. */
  prepare(call: WorkflowCall): Promise<NewRun>
}

type OpenedSystems = Awaited<ReturnType<typeof openSystems>>

const requestMillis = 60_000

/** The reconciliations of one configuration. */
export class Reconciliations implements ReconciliationRuntime {
  readonly plans: ReconciliationPlans
  readonly #parts: ReconciliationParts
  readonly #opened: ReadonlyMap<string, OpenedSystems>

  private constructor(parts: ReconciliationParts, opened: ReadonlyMap<string, OpenedSystems>) {
    const { reconciliations, clock } = parts.services
    this.plans = new ReconciliationPlans({ ...reconciliations, clock })
    this.#parts = parts
    this.#opened = opened
  }

  /** Targets already exist. Throws NotCreated for what can't be created. */
  static async create(
    parts: ReconciliationParts,
    hostFor: HostFor<LookupHost>,
    scope: Scope,
  ): Promise<Reconciliations> {
    const { configuration } = parts
    const opened = new Map<string, OpenedSystems>()
    await createEach(configuration.reconciliations, async ([name, config]) => {
      const { at } = config
      const host = hostFor(name, 'reconciliation', at)
      opened.set(name, await createAt(at, () => openSystems(config, configuration, host, scope)))
    })
    return new Reconciliations(parts, opened)
  }

  /** By name. */
  get configured(): ReadonlyMap<string, ReconciliationConfig> {
    return this.#parts.configuration.reconciliations
  }

  /** The incremental ones. Changes at the target of a reconciliation are its own. */
  get followed(): readonly FollowedSource[] {
    const { outsideDirectory = new Set() } = this.#parts.configuration
    const isInDirectory = (at: string): boolean => at !== ownTarget && !outsideDirectory.has(at)
    return Array.from(this.configured).flatMap(([name, { incremental, source, target }]) => {
      const counts = (at: string): boolean =>
        source.kind === 'target' ? at === source.name : at !== target && isInDirectory(at)
      return incremental ? [{ name, counts }] : []
    })
  }

  prepare(call: WorkflowCall): Promise<NewRun> {
    return this.#parts.prepare(call)
  }

  find(name: string): ReconciledSystems | undefined {
    const opened = this.#opened.get(name)
    if (opened === undefined) return undefined
    const { config } = opened
    const { configuration } = this.#parts
    const systems = (signal: AbortSignal): ComparedSystems => this.#systems(name, opened, signal)
    const last = configuration.targets.get(config.target)?.mapping
    return {
      definition: config.definition,
      target: config.target,
      ofTarget: Array.from(this.configured).flatMap(([one, { target }]) => (target === config.target ? [one] : [])),
      isAutomatic: config.apply === 'automatic',
      copiesLogin: last === undefined || !last.produces.some(({ attribute }) => attribute === userIdName),
      compare: (resumeAt, signal) => compare(systems(signal), resumeAt),
      comparePeople: (logins, resumeAt, signal) => comparePeople(systems(signal), logins, resumeAt),
      compareOne: (who, signal) => compareOne(systems(signal), who),
      answer: (signal) => answers(systems(signal)),
      exceededLimit: (counts) => exceededLimit(config.limits, counts),
      workflowOf: (action) => (action === 'report' ? undefined : config.workflows[action]),
    }
  }

  /** Both systems; undefined if there is no such reconciliation. */
  systems(name: string, signal: AbortSignal): ComparedSystems | undefined {
    const opened = this.#opened.get(name)
    return opened && this.#systems(name, opened, signal)
  }

  #systems(name: string, opened: OpenedSystems, signal: AbortSignal): ComparedSystems {
    const { reconciliations, log } = this.#parts.services
    const { links, folder } = reconciliations
    return {
      ...opened,
      folder,
      signal,
      log: log.with({ reconciliation: name }),
      links: (sources) => links.ofSources(name, sources),
      linksByTarget: (targets) => links.ofTargets(name, targets),
    }
  }

  /** Requests plans when they are due, if this process runs jobs. One process requests each. */
  startSchedules(scope: Scope): void {
    const { services } = this.#parts
    const { jobs, clock, log, leaseMillis } = services
    if (jobs === undefined) return
    const scheduled = Array.from(this.configured, ([name, { schedule }]) => ({ name, schedule })).flatMap(
      ({ name, schedule }) => (schedule === undefined ? [] : [{ name, schedule }]),
    )
    const entries = scheduled.map(({ name, schedule }) => ({
      name: `reconciliation ${name}`,
      schedule,
      timeoutMillis: requestMillis,
      job: {
        run: async ({ due }: { readonly due: Date }) => {
          const by = { login: ownTarget }
          const { isNew } = await this.plans.request(name, { by, isAutomatic: true, scheduled: due })
          return { plans: isNew ? 1 : 0 }
        },
      },
    }))
    const times = { leaseMillis: 2 * leaseMillis, sweepMillis: leaseMillis / 2 }
    scope.own(new JobScheduler(entries, { ...jobs, clock, log }, times).start())
  }
}
