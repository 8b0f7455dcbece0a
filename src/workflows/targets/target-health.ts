import { settle } from '#kernel/awaitable.ts'
import type { Clock } from '#kernel/clock.ts'
import { asGatewayError, type ErrorCode } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { shownReason } from '#kernel/secret-values.ts'
import { type Tracer, tracer } from '#kernel/tracing.ts'
import { hasLookups, type Target } from '#sdk/target/target.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import type { TargetFailure, TargetStatus } from './target-status.ts'
import { watchedTarget } from './watched-target.ts'

/** A login that no account has; looking it up is the check. */
const probe = 'gatehouse-health-check'
const checkMillis = 3_000
/** How long the result of a check is reused, so that many viewers cause few calls. */
const reusedMillis = 5_000
const checksAtOnce = 50
const maxMessage = 500

/** Failures of the target's system, unlike refusals of a single value. */
const failureCodes: ReadonlySet<ErrorCode> = new Set(['TARGET_UNREACHABLE', 'TARGET_TIMEOUT', 'TARGET_FAILED'])

type Check = Pick<TargetStatus, 'health' | 'millis' | 'problem'>
export type TargetHealthCheck = Check & Pick<TargetStatus, 'name'>

interface Watched {
  readonly name: string
  readonly target: Target
  readonly className: string
  failures: number
  last?: TargetFailure
  /** Only one check at a time; a target that does not answer must not collect calls. */
  check?: { readonly started: number; readonly result: Promise<Check> }
}

/** Counts failures of targets. */
export interface TargetMeter {
  failed(target: string, code: ErrorCode): void
}

/** Watches the calls of the targets of one configuration in this process, and checks the targets on demand. */
export class TargetHealth {
  readonly #targets = new Map<string, Watched>()
  readonly #clock: Clock
  readonly #runs: Pick<RunStore, 'incidentsByTarget'>
  readonly #since: Date
  readonly #meter: TargetMeter | undefined

  constructor(clock: Clock, runs: Pick<RunStore, 'incidentsByTarget'>, meter?: TargetMeter) {
    this.#meter = meter
    this.#clock = clock
    this.#runs = runs
    this.#since = clock()
  }

  /** The target, whose failed calls are counted from now on. */
  watch(name: string, className: string, target: Target): Target {
    const watched: Watched = { name, target, className, failures: 0 }
    this.#targets.set(name, watched)
    const traces = tracer
    return watchedTarget(target, (method, call) =>
      settle(
        traces === undefined ? call : () => traced(traces, { name, className, method }, call),
        (result) => result,
        (error) => this.#fail(watched, error),
      ),
    )
  }

  async list(): Promise<readonly TargetStatus[]> {
    const incidents = await this.#runs.incidentsByTarget()
    const named = [...this.#targets].sort(([a], [b]) => (a < b ? -1 : 1))
    return await inParallel(named, checksAtOnce, async ([name, watched]) => {
      const { className, failures, last } = watched
      return {
        name,
        className,
        ...(await currentCheck(watched)),
        failures,
        since: this.#since,
        ...(last === undefined ? {} : { lastFailure: last }),
        incidents: incidents.get(name) ?? 0,
      }
    })
  }

  /** Whether each target answers now, without what the database knows of it. */
  async check(): Promise<readonly TargetHealthCheck[]> {
    const named = [...this.#targets].sort(([a], [b]) => (a < b ? -1 : 1))
    return await inParallel(named, checksAtOnce, async ([name, watched]) => ({
      name,
      ...(await currentCheck(watched)),
    }))
  }

  #fail(watched: Watched, error: unknown): never {
    this.#note(watched, error)
    throw error
  }

  #note(watched: Watched, error: unknown): void {
    const { code, message } = asGatewayError(error)
    if (!failureCodes.has(code)) return
    watched.failures++
    this.#meter?.failed(watched.name, code)
    watched.last = { time: this.#clock(), code, message: message.slice(0, maxMessage) }
  }
}

/** Other methods that answer at once look at the configuration, which is not worth a span. */
const reads = /^(?:find|lookup)/

function traced(
  tracer: Tracer,
  { name, className, method }: { readonly name: string; readonly className: string; readonly method: string },
  call: () => unknown,
): unknown {
  const attributes = { 'gatehouse.target': name, 'gatehouse.class': className, 'code.function.name': method }
  return tracer.span({ name: `target ${name} ${method}`, kind: 'internal', parent: 'current', attributes }, (span) => {
    const result = call()
    if (!(result instanceof Promise) && !reads.test(method)) span.discard()
    return result
  })
}

/** A recent check, or a new one. */
function currentCheck(watched: Watched): Promise<Check> {
  const now = performance.now()
  if (watched.check === undefined || now - watched.check.started > reusedMillis) {
    watched.check = { started: now, result: checkTarget(watched.target, checkMillis) }
  }
  return watched.check.result
}

/** Looks up a user whom no target has, which needs a connection and valid credentials, and changes nothing. */
export async function checkTarget(
  target: Target,
  millis: number,
  reasonOf: (error: unknown) => string = shownReason,
): Promise<Check> {
  if (!hasLookups(target)) return { health: 'unchecked' }
  const started = performance.now()
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${millis} ms`)), millis)
  try {
    const checked = (async () => {
      await target.lookupUserByLogin(probe)
      await target.checkPlaces?.()
    })()
    await Promise.race([checked, late.promise])
    return { health: 'up', millis: Math.round(performance.now() - started) }
  } catch (error) {
    const problem = reasonOf(error).slice(0, maxMessage)
    return { health: 'down', millis: Math.round(performance.now() - started), problem }
  } finally {
    clearTimeout(timer)
  }
}
