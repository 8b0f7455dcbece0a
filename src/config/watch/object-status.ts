import type { LocatedIssue } from '#config/context/located-issue.ts'
import { causeText, type FoundObject } from '#config/load/set-aside.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

/** The result of the last load of all objects. */
export interface ReadOutcome {
  readonly issues: readonly LocatedIssue[]
  readonly found: readonly FoundObject[]
  /** Whether it is running now. */
  readonly applied: boolean
  /** Why it does not run although it has no errors. */
  readonly failure?: string | undefined
}

export interface ObjectReading {
  /** As issues name it. */
  readonly place: string
  /** Whether the object runs as it is, even if the last load failed. */
  readonly runs: boolean
}

export interface Verdict {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

const mostMessage = 4_000
const mostOthers = 5

/** Whether the object is served, or why not, for its condition `Ready`. */
export function objectVerdict({ place, runs }: ObjectReading, outcome: ReadOutcome): Verdict {
  const own = outcome.issues.filter(({ file }) => file === place)
  const errors = own.filter(({ level }) => level === 'error')
  const warnings = own.filter(({ level }) => level === 'warning')
  if (outcome.applied) {
    const cause = outcome.found.find(({ file, cause }) => file === place && cause !== undefined)?.cause
    const message = errors.length > 0 ? textOf(errors) : cause && cut(`because of ${causeText(cause)}`)
    if (message !== undefined) return { status: 'False', reason: 'SetAside', message }
  }
  if (errors.length > 0) return { status: 'False', reason: 'Invalid', message: textOf(errors) }
  if (outcome.applied || runs) {
    if (warnings.length === 0) return { status: 'True', reason: 'Served', message: 'served' }
    return { status: 'True', reason: 'ServedWithWarnings', message: textOf(warnings) }
  }
  if (outcome.failure !== undefined) return { status: 'False', reason: 'NotStarted', message: cut(outcome.failure) }
  const others = [...new Set(outcome.issues.flatMap(({ level, file }) => (level === 'error' ? [file] : [])))]
  const named = others.slice(0, mostOthers).join(', ')
  const more = others.length > mostOthers ? ` and ${others.length - mostOthers} more` : ''
  return {
    status: 'False',
    reason: 'Waiting',
    message: cut(`not served before errors elsewhere are fixed: ${named}${more}`),
  }
}

/**
 * The object's status with this condition; the rest is unchanged. Undefined if nothing needs to be written.
 * The time of the last transition is kept while the condition's status is the same.
 */
export function statusToWrite(
  present: unknown,
  { status, reason, message }: Verdict,
  generation: number,
  now: Date,
  type = 'Ready',
): JsonObject | undefined {
  const before: JsonObject = isJsonObject(present) ? present : {}
  const list = before['conditions']
  const conditions: readonly JsonValue[] = Array.isArray(list) ? list : []
  const old = conditions.find((one) => isJsonObject(one) && one['type'] === type)
  const known: JsonObject = isJsonObject(old) ? old : {}
  const wanted = { type, status, reason, message, observedGeneration: generation }
  const isSame = Object.entries(wanted).every(([name, value]) => known[name] === value)
  if (isSame && before['observedGeneration'] === generation) return undefined
  const since = known['status'] === status ? known['lastTransitionTime'] : undefined
  const lastTransitionTime = typeof since === 'string' ? since : now.toISOString().replace(/\.\d+Z$/, 'Z')
  const others = conditions.filter((one) => one !== old)
  return { ...before, observedGeneration: generation, conditions: [...others, { ...wanted, lastTransitionTime }] }
}

const textOf = (issues: readonly LocatedIssue[]): string =>
  cut(issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('\n'))

/** Half a surrogate pair would come back from the API server as another character, and always count as a change. */
const cut = (text: string): string =>
  (text.length <= mostMessage ? text : `${text.slice(0, mostMessage - 1)}…`).toWellFormed()
