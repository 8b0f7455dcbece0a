import type { LoadResult } from '#config/load.ts'
import { formatIssue } from '#config/located-issue.ts'
import { createRuntime, type Runtime } from '#engine/runtime.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Configuration } from '#sdk/module/configuration.ts'
import type { LoadOutcome } from '#server/configuration-source.ts'
import type { Metrics } from '#server/metrics/metrics.ts'

interface RuntimeInUse {
  readonly runtime: Runtime
  users: number
  retired: boolean
}

/**
 * The running configuration. New requests use a new configuration at once; older requests finish with the old one,
 * which is closed after the last of them.
 */
export class RunningConfiguration {
  #current: RuntimeInUse
  readonly #log: Logger
  readonly #closing = new Set<Promise<void>>()

  constructor(first: Runtime, log: Logger) {
    this.#current = { runtime: first, users: 0, retired: false }
    this.#log = log
  }

  get current(): Runtime {
    return this.#current.runtime
  }

  /** Runs `work` on the current configuration, which stays open until then. */
  async use<T>(work: (runtime: Runtime) => Promise<T>): Promise<T> {
    const inUse = this.#current
    inUse.users++
    try {
      return await work(inUse.runtime)
    } finally {
      inUse.users--
      if (inUse.retired && inUse.users === 0) this.#close(inUse)
    }
  }

  swap(next: Runtime): void {
    const old = this.#current
    this.#current = { runtime: next, users: 0, retired: false }
    old.retired = true
    if (old.users === 0) this.#close(old)
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#closing)
    await this.#current.runtime.close()
  }

  #close(inUse: RuntimeInUse): void {
    const closing = inUse.runtime
      .close()
      .catch((err: unknown) => this.#log.error('old configuration could not be closed', { err }))
      .finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }
}

/** A configuration with errors; `problems` are the lines that `gatehouse check` prints. */
export class ConfigurationRefused extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`the configuration has ${problems.length} problem${problems.length === 1 ? '' : 's'}`)
    this.name = 'ConfigurationRefused'
    this.problems = problems
  }
}

interface ApplyParts {
  readonly running: RunningConfiguration
  readonly services: Parameters<typeof createRuntime>[1]
  readonly metrics: Pick<Metrics, 'reloads' | 'configurationOk'>
  readonly log: Logger
}

/** Logs warnings and returns the configuration. Throws ConfigurationRefused if it has errors. */
export function usable({ configuration, issues }: LoadResult, log: Logger): Configuration {
  const lines = issues.map(formatIssue)
  if (configuration === undefined) throw new ConfigurationRefused(lines)
  for (const problem of lines) log.warn('configuration warning', { problem })
  return configuration
}

/** Replaces the running configuration by a valid one. An invalid one is reported, and the running one stays. */
export async function applyConfiguration(
  loaded: LoadResult,
  { running, services, metrics, log }: ApplyParts,
): Promise<LoadOutcome> {
  let next: Runtime
  try {
    next = await createRuntime(usable(loaded, log), services)
  } catch (err) {
    metrics.reloads.inc({ outcome: 'refused' })
    metrics.configurationOk.set(0)
    const problems = err instanceof ConfigurationRefused ? err.problems : undefined
    // Problems in the YAML have a place; only other failures need a stack trace.
    log.error('configuration change refused; the running one stays', problems === undefined ? { err } : { problems })
    return problems === undefined ? 'failed' : 'refused'
  }
  running.swap(next)
  metrics.reloads.inc({ outcome: 'applied' })
  metrics.configurationOk.set(1)
  log.info('configuration change applied', { hash: next.configuration.hash })
  return 'applied'
}
