import cluster from 'node:cluster'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Logger } from '#kernel/logger.ts'
import { downBecause, type HealthReport, type WorkerHealth } from '#server/health.ts'
import { createReadyMetric } from '#server/metrics/process-metrics.ts'
import type { Operations } from '#server/operations.ts'
import {
  combineMetrics,
  type MetricSnapshot,
  metricsRegistry,
  readSnapshots,
  remaining,
} from '#server/workers/combined-metrics.ts'
import type { WorkerSettings } from '#server/workers/worker-messages.ts'
import { createWorkerMetrics } from '#server/workers/worker-metrics.ts'
import { type WorkerExit, WorkerProcess } from '#server/workers/worker-process.ts'

interface SupervisorParts {
  readonly count: number
  readonly log: Logger
  /** Where the standard output and error of workers go, in whole lines. */
  writeOutput(lines: string): void
  writeError(lines: string): void
}

/** How to start a worker. */
interface Launch {
  /** Of `gatehouse`. */
  readonly args: readonly string[]
  readonly settings: Omit<WorkerSettings, 'worker'>
}

/** A place of the pool, with one process after the other. */
interface Slot {
  readonly worker: number
  process: WorkerProcess | undefined
  /** Processes that ended soon after they started, one after the other. */
  failures: number
  timer?: NodeJS.Timeout
}

const firstRestartMillis = 250
const longestRestartMillis = 30_000
/** A worker that ran this long is restarted as if it were the first time. */
const stableMillis = 60_000
/** A worker that sends nothing during this number of checks is killed: a minute, as for the liveness probe of the chart. */
const checkMillis = 5_000
const mostSilentChecks = 12
const readyMillis = 5_000
/** Half of what Prometheus waits by default: a worker that hangs must not hide the metrics of the others. */
const metricsMillis = 5_000
const healthMillis = 10_000
/** How long workers may take to load a change, one after the other. */
const differMillis = 30_000
/** After the time that workers have to finish open requests. */
const killMillis = 5_000

/**
 * Starts workers, which share the sockets of the listeners, and replaces those that end. No connection passes through this
 * process, so that a killed worker takes only its own with it. Reports about all of them together.
 */
export class Supervisor implements Operations {
  readonly registry = new Registry()
  readonly #parts: SupervisorParts
  readonly #slots: readonly Slot[]
  readonly #meters = createWorkerMetrics(this.registry)
  readonly #checks: NodeJS.Timeout
  #settings: Launch['settings'] | undefined
  #retired: readonly MetricSnapshot[] = []
  #differ: NodeJS.Timeout | undefined
  #hasStarted = false
  #isStopping = false

  constructor(parts: SupervisorParts) {
    this.#parts = parts
    this.#slots = Array.from({ length: parts.count }, (_, index) => ({
      worker: index + 1,
      process: undefined,
      failures: 0,
    }))
    // Without a zero, Prometheus does not see the first exit as an increase.
    for (const { worker } of this.#slots) this.#meters.exits.inc({ worker: String(worker) }, 0)
    collectDefaultMetrics({ register: this.registry })
    createReadyMetric(this.registry, () => this.ready())
    this.#checks = setInterval(() => this.#check(), checkMillis)
    this.#checks.unref()
  }

  /**
   * Starts the first worker, which creates tables and keys, and then the others. Returns the lines that the first reports,
   * or the exit code if it does not start.
   */
  async start({ args, settings }: Launch): Promise<readonly string[] | number> {
    this.#settings = settings
    // Workers accept connections themselves, each when it has time. Passed on by this process, as is the default, a
    // connection that is on its way to a worker would hang if that is killed.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    cluster.setupPrimary({
      args: [...args],
      // JSON would lose NaN, the value of a figure that can't be read.
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    const [first, ...others] = this.#slots
    if (first === undefined) return 0
    const process = this.#fork(first)
    const outcome = await Promise.race([process.started, process.exited])
    if ('code' in outcome) {
      if (this.#isStopping) return 0
      const { code, signal } = outcome
      // It printed the reason, unless it was killed.
      if (signal !== null) this.#parts.log.error('the first worker was killed before it served requests', { signal })
      return code ?? 1
    }
    this.#hasStarted = true
    if (!this.#isStopping) for (const slot of others) this.#fork(slot)
    return outcome
  }

  /** Workers reload the configuration. */
  reload(): void {
    for (const { process } of this.#started()) process.kill('SIGHUP')
  }

  /** Workers finish open requests within that time, all at the same time. Returns the exit code. */
  async stop(seconds: number): Promise<number> {
    this.#isStopping = true
    clearInterval(this.#checks)
    clearTimeout(this.#differ)
    for (const { timer } of this.#slots) clearTimeout(timer)
    const processes = this.#slots.flatMap(({ process }) => (process === undefined ? [] : [process]))
    for (const process of processes) process.kill('SIGTERM')
    const timer = setTimeout(
      () => {
        for (const process of processes) process.kill('SIGKILL')
      },
      seconds * 1000 + killMillis,
    )
    const exits = await Promise.all(processes.map(({ exited }) => exited))
    clearTimeout(timer)
    // A worker that was still starting has no open requests, and ends by the signal: by that of a terminal, which reaches
    // workers too, or by ours.
    const isClean = ({ code, signal }: WorkerExit, index: number): boolean =>
      code === 0 || ((signal === 'SIGINT' || signal === 'SIGTERM') && processes[index]?.isStarted === false)
    return exits.every(isClean) ? 0 : 1
  }

  async ready(): Promise<void> {
    if (this.#isStopping) throw new Error('shutting down')
    try {
      await Promise.any(this.#started().map(({ process }) => process.ask('ready', readyMillis)))
    } catch (error) {
      const [first] = error instanceof AggregateError ? error.errors : [error]
      throw first instanceof Error ? first : new Error('no worker has started')
    }
  }

  async health(): Promise<HealthReport> {
    const workers = await Promise.all(this.#slots.map((slot) => this.#describe(slot)))
    const able = this.#slots.find((_, index) => workers[index]?.state === 'ready')
    try {
      if (this.#isStopping) throw new Error('shutting down')
      if (able?.process === undefined) throw new Error('no worker is ready')
      const report = await able.process.ask('health', healthMillis)
      const configurations = new Set(workers.map(({ configuration }) => configuration))
      const isWhole = workers.every(({ state }) => state === 'ready') && configurations.size === 1
      return { ...report, status: report.status === 'up' && !isWhole ? 'degraded' : report.status, workers }
    } catch (error) {
      return { status: 'down', gateway: downBecause(error), targets: [], issuers: [], workers }
    }
  }

  async metrics(): Promise<Registry> {
    return metricsRegistry(await this.#allMetrics())
  }

  async #allMetrics(): Promise<MetricSnapshot[]> {
    const { workers } = this.#meters
    for (const state of ['ready', 'starting', 'restarting'] as const) {
      workers.set({ state }, this.#slots.filter((slot) => stateOf(slot) === state).length)
    }
    const started = this.#slots.flatMap((slot) =>
      slot.process?.isStarted === true ? [{ slot, process: slot.process }] : [],
    )
    const answers = await Promise.allSettled(started.map(({ process }) => process.ask('metrics', metricsMillis)))
    const own = await readSnapshots(this.registry)
    const processes = started.flatMap(({ slot, process }, index) => {
      const answer = answers[index]
      // What it counted is among the retired.
      if (answer === undefined || slot.process !== process) return []
      const { worker } = slot
      if (answer.status === 'fulfilled') process.metrics = answer.value
      else if (!process.hasExited) {
        this.#parts.log.warn('the metrics of a worker cannot be read', { worker, err: answer.reason })
      }
      const metrics = answer.status === 'fulfilled' ? process.metrics : remaining(process.metrics)
      return [{ worker: String(worker), metrics }]
    })
    const retired = { worker: '', metrics: this.#retired }
    return combineMetrics([{ worker: 'supervisor', metrics: own }, retired, ...processes])
  }

  #fork(slot: Slot): WorkerProcess {
    const { log, writeOutput, writeError } = this.#parts
    const { worker } = slot
    if (this.#settings === undefined) throw new Error('the supervisor has not started')
    const process = new WorkerProcess({
      settings: { ...this.#settings, worker },
      writeOutput,
      writeError,
      onServes: () => this.#compareLater(),
      allMetrics: () => this.#allMetrics(),
    })
    slot.process = process
    void process.started.then(() => log.info('worker started', { worker, pid: process.pid }))
    void process.exited.then((exit) => this.#exited(slot, process, exit))
    return process
  }

  #exited(slot: Slot, process: WorkerProcess, { code, signal, lastError }: WorkerExit): void {
    const { log } = this.#parts
    if (this.#isStopping || !this.#hasStarted) return
    const { worker } = slot
    const ranMillis = performance.now() - process.startedAt
    slot.process = undefined
    slot.failures = process.isStarted && ranMillis >= stableMillis ? 1 : slot.failures + 1
    const restartMillis = Math.min(longestRestartMillis, firstRestartMillis * 2 ** Math.min(slot.failures - 1, 10))
    this.#meters.exits.inc({ worker: String(worker) })
    this.#retired = combineMetrics([
      { worker: '', metrics: this.#retired },
      { worker: '', metrics: remaining(process.metrics) },
    ])
    // An operator may stop a worker by a signal, and it then finishes its requests.
    log[code === 0 ? 'info' : 'error']('worker exited; another one starts', {
      worker,
      pid: process.pid,
      ...(signal === null ? { code } : { signal }),
      ...(lastError === '' ? {} : { lastError }),
      ranSeconds: Math.round(ranMillis / 1000),
      restartMillis,
    })
    slot.timer = setTimeout(() => this.#fork(slot), restartMillis)
  }

  /** A worker whose event loop hangs keeps its connections and never ends by itself. */
  #check(): void {
    for (const { worker, process } of this.#started()) {
      if (process.silentChecks >= mostSilentChecks) {
        const seconds = (mostSilentChecks * checkMillis) / 1000
        this.#parts.log.error('worker does not respond and is killed', { worker, pid: process.pid, seconds })
        process.kill('SIGKILL')
        continue
      }
      process.silentChecks++
      process.ask('alive', checkMillis).catch(() => {})
    }
  }

  #compareLater(): void {
    clearTimeout(this.#differ)
    this.#differ = setTimeout(() => {
      const served = this.#started().map(({ worker, process }) => [`worker ${worker}`, process.configuration] as const)
      if (new Set(served.map(([, configuration]) => configuration)).size < 2) return
      this.#parts.log.error('workers serve different configurations', { configurations: Object.fromEntries(served) })
    }, differMillis)
    this.#differ.unref()
  }

  async #describe(slot: Slot): Promise<WorkerHealth> {
    const { worker, process } = slot
    const state = stateOf(slot)
    const known = {
      worker,
      ...(process?.pid === undefined ? {} : { pid: process.pid }),
      ...(process?.configuration === undefined ? {} : { configuration: process.configuration }),
    }
    if (state !== 'ready' || process === undefined) return { ...known, state }
    try {
      await process.ask('ready', readyMillis)
      return { ...known, state }
    } catch (error) {
      return { ...known, state: 'not ready', problem: downBecause(error).problem }
    }
  }

  /** The processes that serve requests. */
  #started(): { readonly worker: number; readonly process: WorkerProcess }[] {
    return this.#slots.flatMap(({ worker, process }) =>
      process?.isStarted === true && !process.hasExited ? [{ worker, process }] : [],
    )
  }
}

const stateOf = ({ process }: Slot): 'ready' | 'starting' | 'restarting' => {
  if (process === undefined || process.hasExited) return 'restarting'
  return process.isStarted ? 'ready' : 'starting'
}
