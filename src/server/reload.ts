import type { LoadResult } from '#config/load.ts'
import { formatIssue } from '#config/located-issue.ts'
import { causeText, type FoundObject, lostObjects, titleOf } from '#config/set-aside.ts'
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

/** A configuration that is not served; `problems` are the lines that `gatehouse check` prints. */
export class ConfigurationRefused extends Error {
  readonly problems: readonly string[]

  constructor(
    problems: readonly string[],
    reason = `the configuration has ${problems.length} problem${problems.length === 1 ? '' : 's'}`,
  ) {
    super(reason)
    this.name = 'ConfigurationRefused'
    this.problems = problems
  }
}

interface ApplyParts extends UseOptions {
  readonly running: RunningConfiguration
  readonly services: Parameters<typeof createRuntime>[1]
  readonly metrics: Pick<Metrics, 'reloads' | 'configurationOk' | 'objects'>
}

interface UseOptions {
  /** Refuse a configuration with any error, instead of setting objects aside. */
  readonly strict: boolean
  /** The objects of the running configuration; none at the start. */
  readonly served: readonly FoundObject[]
  readonly log: Logger
}

/**
 * Logs warnings and objects that are set aside, and returns the configuration. Throws ConfigurationRefused if nothing
 * of it can be served, or if it would set aside an object that is being served.
 */
export function usable(
  { configuration, issues, found }: Pick<LoadResult, 'configuration' | 'issues' | 'found'>,
  { strict, served, log }: UseOptions,
): Configuration {
  const lines = (...levels: readonly string[]) => issues.filter(({ level }) => levels.includes(level)).map(formatIssue)
  const errors = lines('error')
  if (configuration === undefined || (strict && errors.length > 0))
    throw new ConfigurationRefused(lines('error', 'warning'))
  const lost = lostObjects(served, found)
  if (lost.length > 0) {
    const reason = `objects that are served would be set aside: ${lost.slice(0, mostLost).map(titleOf).join(', ')}`
    throw new ConfigurationRefused(
      errors,
      lost.length > mostLost ? `${reason} and ${lost.length - mostLost} more` : reason,
    )
  }
  for (const problem of lines('warning')) log.warn('configuration warning', { problem })
  const aside = found.filter(({ cause }) => cause !== undefined)
  for (const object of aside) {
    const at = object.cause?.own === true ? object.cause.at : placeOf(object)
    log.error('object set aside', { object: titleOf(object), at, reason: causeText(object.cause) })
  }
  if (aside.length > 0) {
    log.warn('some objects are set aside', { served: found.length - aside.length, setAside: aside.length })
  }
  return configuration
}

const mostLost = 20

const placeOf = ({ file, line }: FoundObject): string => (line === undefined ? file : `${file}:${line}:1`)

/** Replaces the running configuration. One that can't be used is reported, and the running one stays. */
export async function applyConfiguration(
  loaded: LoadResult,
  { running, services, metrics, ...options }: ApplyParts,
): Promise<LoadOutcome> {
  const { log } = options
  let next: Runtime
  try {
    next = await createRuntime(usable(loaded, options), services)
  } catch (err) {
    metrics.reloads.inc({ outcome: 'refused' })
    metrics.configurationOk.set(0)
    const refused = err instanceof ConfigurationRefused ? { reason: err.message, problems: err.problems } : undefined
    // Problems in the YAML have a place; only other failures need a stack trace.
    log.error('configuration change refused; the running one stays', refused ?? { err })
    return refused === undefined ? 'failed' : 'refused'
  }
  running.swap(next)
  metrics.reloads.inc({ outcome: 'applied' })
  metrics.configurationOk.set(1)
  metrics.objects(loaded.found)
  log.info('configuration change applied', { hash: next.configuration.hash })
  return 'applied'
}
