import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import { SecretBox } from '#keys/secret-box.ts'
import { loadSecretKeys } from '#keys/secret-keys.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { type Fixture, type FixtureOptions, startWorkflows } from '#testing/workflows/workflow-fixture.ts'
import type { RunState, StoredRun } from '#workflows/record/run.ts'
import { RunService } from '#workflows/runs/run-service.ts'
import { RunWorker, type WorkerLimits } from '#workflows/runs/run-worker.ts'
import type { Workflows } from '#workflows/runs/workflows.ts'
import { registerRunTimers } from '#workflows/steps/run-timers.ts'
import { noCrash, noStepObserver, subjectQueue, type WorkflowServices } from '#workflows/steps/workflow-services.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import type { RunWakeUp } from '#workflows/store/wake-up.ts'
import { InProcessWakeUp } from '#workflows/store/wake-up.ts'
import { TimerLoop } from '#workflows/timers/timer-loop.ts'

const key = randomBytes(32).toString('base64')

const defaultRetries = { attempts: 4, unknownAttempts: 2, firstMillis: 5, mostMillis: 20 }

/** One process that executes stored runs, like the server. */
export class DurableProcess {
  readonly storage: Storage
  readonly wake: RunWakeUp
  readonly services: WorkflowServices
  #fixture: Fixture

  constructor(storage: Storage, wake: RunWakeUp, services: WorkflowServices, fixture: Fixture) {
    this.storage = storage
    this.wake = wake
    this.services = services
    this.#fixture = fixture
  }

  get workflows(): Workflows {
    return this.#fixture.workflows
  }

  get runs(): RunService {
    return new RunService(() => this.workflows, this.services)
  }

  get run(): Fixture['run'] {
    return this.#fixture.run
  }

  /** Another configuration takes over. */
  async reload(options: Omit<FixtureOptions, 'services'>): Promise<void> {
    this.#fixture = await startWorkflows({ ...options, services: this.services })
  }

  /** `changed` replaces the process's view of one worker. */
  worker(limits: Partial<WorkerLimits> = {}, changed: Partial<WorkflowServices> = {}): RunWorker {
    const all = { leaseMillis: 2_000, sweepMillis: 50, retries: defaultRetries, drainMillis: 2_000, ...limits }
    const worker = new RunWorker({ ...this.services, ...changed }, (work) => work(this.workflows), all)
    void this.wake.start(() => worker.wake())
    worker.start()
    onTestFinished(() => worker.close())
    return worker
  }

  timers(): TimerLoop {
    const loop = new TimerLoop({ store: this.storage.timers, log: silentLogger, everyMillis: 50 })
    registerRunTimers(loop, this.storage.runs)
    loop.start()
    onTestFinished(() => loop.close())
    return loop
  }

  /** The run once it is in one of these states. */
  async settled(id: string, ...states: RunState[]): Promise<StoredRun> {
    const wanted = states.length === 0 ? ['completed', 'failed', 'cancelled', 'incident', 'waiting'] : states
    for (const end = Date.now() + 15_000; ; await delay(20)) {
      const run = await this.storage.runs.get(id)
      if (run !== undefined && wanted.includes(run.state)) return run
      if (Date.now() > end) throw new Error(`run ${id} is ${run?.state}, not ${wanted.join(' or ')}`)
    }
  }
}

export interface DurableOptions {
  readonly log?: Logger
  readonly wake?: RunWakeUp
  /** The differences of this process from others. */
  readonly changed?: (storage: Storage) => Partial<WorkflowServices>
}

/** Opens the database like one process. Stores and workers end with the test. */
export async function openDurable(
  url: string,
  options: Omit<FixtureOptions, 'services'>,
  { log = silentLogger, wake = new InProcessWakeUp(), changed = () => ({}) }: DurableOptions = {},
): Promise<DurableProcess> {
  const storage = openStorage({ url, clock: systemClock, log: silentLogger, wake })
  onTestFinished(() => storage.close())
  await storage.ready()
  const services: WorkflowServices = {
    log,
    clock: systemClock,
    audit: storage.audit,
    subjects: subjectQueue(),
    rateLimits: storage.rateLimits,
    runs: storage.runs,
    idempotency: storage.idempotency,
    leaseMillis: 2_000,
    secrets: new SecretBox(() => loadSecretKeys({ environment: { GATEHOUSE_SECRET_KEY: key }, dataFolder: '' })),
    observer: noStepObserver,
    crash: noCrash,
    passwordChanges: storage.passwordChanges,
    ...changed(storage),
  }
  return new DurableProcess(storage, wake, services, await startWorkflows({ ...options, log, services }))
}

/**
 * The store of a worker whose process dies at a point: it claims once, never renews, and nothing returns after that
 * point. Without a point it only takes too long.
 */
export function dyingStore(store: RunStore, point?: 'before-target' | 'before-commit' | 'after-commit'): RunStore {
  const never = new Promise<never>(() => {})
  let claimed = false
  return new Proxy(store, {
    get(target, name: keyof RunStore) {
      if (name === 'renew') return () => never
      if (name === 'claim') {
        return async (...args: Parameters<RunStore['claim']>) => {
          const runs = claimed ? [] : await target.claim(...args)
          claimed ||= runs.length > 0
          return runs
        }
      }
      if (name === 'commit' && point !== undefined) {
        return async (step: Parameters<RunStore['commit']>[0]) => {
          // The planned change of a step is committed before the target is called.
          const intends = step.data['attempts'] !== undefined
          const done = intends || point === 'after-commit' ? await target.commit(step) : undefined
          return intends && point !== 'before-target' && done !== undefined ? done : await never
        }
      }
      const method = target[name] as (...args: unknown[]) => unknown
      return method.bind(target)
    },
  })
}
