import type { Configuration } from '#config/configuration/configuration.ts'
import { NotCreated } from '#config/configuration/create-at.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import type { LoadResult } from '#config/load/load.ts'
import { causeText, type FoundObject, lostObjects, objectKey, servedCount, titleOf } from '#config/load/set-aside.ts'
import { isStored } from '#config/sources/stored-objects.ts'
import type { LoadOutcome } from '#config/watch/configuration-source.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import type { Logger } from '#kernel/logger.ts'
import { shownReason } from '#kernel/secret-values.ts'
import { createRuntime, type Runtime } from '#server/composition/runtime.ts'
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
  use<T>(work: (runtime: Runtime) => Promise<T>): Promise<T>
  use<T>(work: (runtime: Runtime) => Awaitable<T>): Awaitable<T>
  use<T>(work: (runtime: Runtime) => Awaitable<T>): Awaitable<T> {
    const inUse = this.#current
    inUse.users++
    let result: Awaitable<T> | undefined
    try {
      result = work(inUse.runtime)
    } finally {
      if (!(result instanceof Promise)) this.#leave(inUse)
    }
    return result instanceof Promise ? result.finally(() => this.#leave(inUse)) : result
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

  #leave(inUse: RuntimeInUse): void {
    inUse.users--
    if (inUse.retired && inUse.users === 0) this.#close(inUse)
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
  /** What was refused: all of what was read, or what is left of it without what could not be created. */
  readonly loaded: LoadResult

  constructor(problems: readonly string[], reason: string, loaded: LoadResult) {
    super(reason)
    this.name = 'ConfigurationRefused'
    this.problems = problems
    this.loaded = loaded
  }
}

interface ApplyParts extends StartOptions {
  readonly running: RunningConfiguration
  readonly services: Parameters<typeof createRuntime>[1]
  readonly metrics: Pick<Metrics, 'reloads' | 'configurationOk' | 'objects'>
}

/** Another attempt failed like the one before it. */
class StillNotCreated extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super('what could not be created still cannot')
    this.name = 'StillNotCreated'
    this.problems = problems
  }
}

interface UseOptions {
  /** Refuse a configuration with any error, instead of setting objects aside. */
  readonly strict: boolean
  /** The objects of the running configuration; none at the start. */
  readonly served: readonly FoundObject[]
}

interface StartOptions extends UseOptions {
  readonly log: Logger
  /** For another attempt: what could not be created in the one before it. */
  readonly again?: readonly string[] | undefined
}

/**
 * The configuration, if it may replace the one that runs. Throws ConfigurationRefused if nothing of it can be served, or
 * if it would set aside an object that is being served.
 */
export function usable(loaded: LoadResult, { strict, served }: UseOptions): Configuration {
  const { configuration, issues, found } = loaded
  const errors = issues.filter(({ level }) => level === 'error').map(formatIssue)
  // What operators add must not stop a start.
  const isStrict = strict && issues.some(({ level, file }) => level === 'error' && !isStored(file))
  if (configuration === undefined || isStrict) {
    const count = errors.length === 1 ? 'an error' : `${errors.length} errors`
    const rule = configuration === undefined ? '' : ', which --strict does not allow'
    throw new ConfigurationRefused(issues.map(formatIssue), `the configuration has ${count}${rule}`, loaded)
  }
  const lost = lostObjects(served, found)
  if (lost.length === 0) return configuration
  const more = lost.length > mostLost ? ` and ${lost.length - mostLost} more` : ''
  const names = lost.slice(0, mostLost).map(titleOf).join(', ')
  throw new ConfigurationRefused(errors, `objects that are served would be set aside: ${names}${more}`, loaded)
}

/**
 * Creates everything that can be served, and sets aside what can't be created. Logs warnings and what is set aside.
 * Throws ConfigurationRefused, or the failure of a part that isn't an object of its own. Another attempt that finds all of
 * `again` still failing ends there, and throws StillNotCreated.
 */
export async function startConfiguration(
  loaded: LoadResult,
  create: (configuration: Configuration) => Promise<Runtime>,
  options: StartOptions,
): Promise<{ readonly runtime: Runtime; readonly served: LoadResult }> {
  const { again } = options
  let served = loaded
  for (;;) {
    const { notCreated = [] } = served
    const known = new Set(notCreated)
    if (again?.every((problem) => known.has(problem)) === true) throw new StillNotCreated(notCreated)
    const configuration = usable(served, options)
    try {
      const runtime = await create(configuration)
      report(served, options.log)
      return { runtime, served }
    } catch (error) {
      const isObject = error instanceof NotCreated && !options.strict
      const rest = isObject
        ? served.without?.(
            error.all.map(({ at, reason }) => ({
              at,
              message: `cannot be created: ${reason} (the gateway tries again)`,
            })),
          )
        : undefined
      if (rest === undefined) throw error
      served = rest
    }
  }
}

function report({ issues, found }: LoadResult, log: Logger): void {
  for (const issue of issues) {
    if (issue.level === 'warning') log.warn('configuration warning', { problem: formatIssue(issue) })
  }
  const aside = found.filter(({ cause }) => cause !== undefined)
  for (const object of aside) {
    const at = object.cause?.own === true ? object.cause.at : placeOf(object)
    log.error('object set aside', { object: titleOf(object), at, reason: causeText(object.cause) })
  }
  if (aside.length > 0) {
    log.warn('some objects are set aside', { served: servedCount(found), setAside: aside.length })
  }
}

const mostLost = 20

const placeOf = ({ file, line }: FoundObject): string => (line === undefined ? file : `${file}:${line}:1`)

/** The outcome of a change. */
export interface Applied {
  /** `unchanged`: another attempt failed, so that everything is as it was. */
  readonly outcome: LoadOutcome | 'unchanged'
  readonly served: LoadResult
  /** What could not be created, with the reasons. Another attempt may succeed. */
  readonly notCreated: readonly string[]
}

/**
 * Replaces the running configuration, and returns what of it is served. One that can't be used is reported, and the
 * running one stays.
 */
export async function applyConfiguration(
  loaded: LoadResult,
  { running, services, metrics, ...options }: ApplyParts,
): Promise<Applied> {
  const { log, again, served: before } = options
  try {
    const create = (configuration: Configuration) => createRuntime(configuration, services)
    const { runtime, served } = await startConfiguration(loaded, create, options)
    running.swap(runtime)
    metrics.reloads.inc({ outcome: 'applied' })
    metrics.configurationOk.set(1)
    metrics.objects(served.found)
    const { hash } = runtime.configuration
    if (again === undefined) log.info('configuration change applied', { hash })
    else
      log.info('another attempt to create objects was applied', { hash, created: createdSince(before, served.found) })
    return { outcome: 'applied', served, notCreated: served.notCreated ?? [] }
  } catch (err) {
    const notCreated = problemsOf(err)
    if (again !== undefined) return { outcome: 'unchanged', served: loaded, notCreated }
    metrics.reloads.inc({ outcome: 'refused' })
    metrics.configurationOk.set(0)
    const refused = err instanceof ConfigurationRefused ? { reason: err.message, problems: err.problems } : undefined
    // Problems in the YAML have a place; only other failures need a stack trace.
    log.error('configuration change refused; the running one stays', refused ?? { err })
    if (err instanceof ConfigurationRefused) return { outcome: 'refused', served: err.loaded, notCreated }
    return { outcome: 'failed', served: loaded, notCreated }
  }
}

/** Empty if another attempt can't help, since only errors of the YAML are the cause. */
function problemsOf(error: unknown): readonly string[] {
  if (error instanceof StillNotCreated) return error.problems
  return error instanceof ConfigurationRefused ? (error.loaded.notCreated ?? []) : [shownReason(error)]
}

/** The objects that were not served before. */
function createdSince(before: readonly FoundObject[], now: readonly FoundObject[]): readonly string[] {
  const known = new Set(before.filter(({ cause }) => cause === undefined).map(objectKey))
  return now
    .filter((object) => object.cause === undefined && !known.has(objectKey(object)))
    .slice(0, mostLost)
    .map(titleOf)
}
