import type { AuditEntry } from '#domain/audit.ts'
import type { AuditPlace, AuditTrail } from '#engine/provisioning/audit-trail.ts'
import { SavedObject } from '#engine/workflow/saved-json.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { TargetChange } from '#sdk/target/target.ts'

/**
 * What a step was about to change at a target, as it would stand in the audit. It is stored with the run before the
 * target is called: when nobody learns what came of the call, the next attempt finds by reading that the change is there,
 * and the audit gets its row all the same.
 */
export interface Intent extends AuditEntry {
  /** The group that it is about, where it is not about the user. */
  readonly group?: string
}

const maxIntents = 5_000

export const intentsToJson = (intents: readonly Intent[]): JsonObject[] =>
  intents.slice(0, maxIntents).map(({ time, workflow, ...row }) => ({
    ...row,
    time: time.getTime(),
    workflow: { ...workflow },
  }))

const optional = ['caller', 'value', 'requestId', 'approval', 'reason', 'group'] as const

/** Throws WORKFLOW_FAILED for anything that was not written by `intentsToJson`. */
export function intentsFromJson(list: readonly JsonValue[]): Intent[] {
  return list.map((item) => {
    const saved = new SavedObject(item, 'intent')
    const workflow = saved.object('workflow')
    const given = optional.flatMap((name) => {
      const text = saved.optionalText(name)
      return text === undefined ? [] : [[name, text]]
    })
    return {
      id: saved.text('id'),
      time: new Date(saved.count('time')),
      requestor: saved.text('requestor'),
      subject: saved.text('subject'),
      workflow: { id: workflow.text('id'), name: workflow.text('name') },
      target: saved.text('target'),
      kind: saved.oneOf('kind', ['entry', 'attribute', 'group']),
      action: saved.oneOf('action', ['add', 'replace', 'delete']),
      attribute: saved.text('attribute'),
      ...(Object.fromEntries(given) as Partial<Intent>),
    }
  })
}

const sameChange = (a: AuditEntry, b: AuditEntry): boolean =>
  a.target === b.target &&
  a.kind === b.kind &&
  a.action === b.action &&
  a.attribute === b.attribute &&
  a.value === b.value &&
  a.subject === b.subject

/** As rows that are not in the audit yet. */
export const intentsOf = (trail: AuditTrail, place: AuditPlace, changes: readonly TargetChange[]): Intent[] =>
  trail.rowsOf(place, changes).map((row, i) => {
    const group = changes[i]?.group
    return group === undefined ? row : { ...row, group }
  })

/** Those that no row tells of. An intent that was repeated is told once. */
export function untold(intents: readonly Intent[], rows: readonly AuditEntry[]): Intent[] {
  return intents.filter(
    (intent, i) =>
      !rows.some((row) => sameChange(row, intent)) &&
      !intents.slice(0, i).some((earlier) => sameChange(earlier, intent)),
  )
}

/** Targets say by these that they have changed nothing; after anything else it is not known. */
const refusals: ReadonlySet<string> = new Set([
  'BAD_REQUEST',
  'CONFLICT',
  'VERSION_MISMATCH',
  'NOT_FOUND',
  'NOT_SUPPORTED',
  'TARGET_FAILED',
  'TOO_MANY_REQUESTS',
])

export const isRefusedCall = (error: unknown): boolean => error instanceof GatewayError && refusals.has(error.code)
