import type { AuditEntry } from '#domain/audit.ts'
import type { AuditPlace, AuditTrail } from '#engine/provisioning/audit-trail.ts'
import { SavedObject } from '#engine/workflow/saved-json.ts'
import type { Attributes } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { hasGroups, hasLookups, type Target, type TargetChange, type TargetRequest } from '#sdk/target/target.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'

/**
 * A change that a step plans to make at a target, in the form of an audit entry. It is stored with the run before
 * the target is called: if the outcome of the call is unknown, the next attempt finds by reading that the change
 * was made, and the audit still gets its row.
 */
export interface Intent extends AuditEntry {
  /** The group, if it is not about the user. */
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

/** Throws WORKFLOW_FAILED for anything that `intentsToJson` did not write. */
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

/** Planned changes without an audit entry, each once. */
export function unreported(intents: readonly Intent[], rows: readonly AuditEntry[]): Intent[] {
  return intents.filter(
    (intent, i) =>
      !rows.some((row) => sameChange(row, intent)) &&
      !intents.slice(0, i).some((earlier) => sameChange(earlier, intent)),
  )
}

/** With these errors targets report that they changed nothing; after any other it is unknown. */
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

/** The outcome of planned changes whose process died. */
export interface FoundIntents {
  readonly there: readonly Intent[]
  /** Not, or not yet: the target may still work on it. */
  readonly absent: readonly Intent[]
  /** Not visible by reading: a password, or a user with another login at the target. */
  readonly unknown: readonly Intent[]
}

interface FindParts {
  target(name: string): Target
  readonly workflow: { readonly id: string; readonly name: string }
  readonly log: Logger
}

type Finding = 'there' | 'absent' | 'unknown'

/** Only reads. Throws errors of targets. */
export async function findIntents(intents: readonly Intent[], parts: FindParts): Promise<FoundIntents> {
  const findings = new Map<Intent, Finding>()
  for (const [name, ofTarget] of groupBy(intents, ({ target }) => target)) {
    const target = parts.target(name)
    const request = requestOf(ofTarget, parts)
    const aboutGroups = ofTarget.filter(isAboutGroup)
    for (const intent of aboutGroups) findings.set(intent, await findInGroup(target, intent))
    const aboutUsers = ofTarget.filter((intent) => !isAboutGroup(intent))
    for (const [, ofUser] of groupBy(aboutUsers, ({ subject }) => subject)) {
      for (const [intent, finding] of await findInUser(target, ofUser, request)) findings.set(intent, finding)
    }
  }
  const those = (finding: Finding): Intent[] => intents.filter((intent) => findings.get(intent) === finding)
  return { there: those('there'), absent: those('absent'), unknown: those('unknown') }
}

const isAboutGroup = ({ kind, attribute, group }: Intent): boolean =>
  group !== undefined || (kind === 'entry' && attribute === 'name')

async function findInGroup(target: Target, { kind, action, attribute, value, group }: Intent): Promise<Finding> {
  if (!hasGroups(target) || value === undefined) return 'unknown'
  if (kind === 'group') return findMemberGroup(target, action, value, group ?? '')
  const found = await target.findGroup(kind === 'entry' ? value : (group ?? ''))
  if (kind === 'entry') return thereIf((found !== undefined) === (action !== 'delete'))
  if (found?.attributes === undefined) return 'unknown'
  return thereIf(found.attributes.values(attribute).includes(value) === (action !== 'delete'))
}

async function findMemberGroup(target: Target, action: string, member: string, group: string): Promise<Finding> {
  const found = hasLookups(target) ? await target.lookupGroupByName(group, { members: true }) : undefined
  if (found?.memberGroups === undefined) return 'unknown'
  return thereIf(found.memberGroups.some(({ name }) => sameLogin(name, member)) === (action !== 'delete'))
}

/** A user with another login at the target is not found, so the outcome is unknown. */
async function findInUser(
  target: Target,
  intents: readonly Intent[],
  request: TargetRequest,
): Promise<Map<Intent, Finding>> {
  const [first] = intents
  const entry = intents.find(({ kind }) => kind === 'entry')
  const login = entry?.value ?? first?.subject ?? ''
  const names = [...new Set(intents.flatMap(({ kind, attribute }) => (kind === 'attribute' ? [attribute] : [])))]
  const found = await target.findUser(login, names, request)
  return new Map(
    intents.map((intent) => {
      if (intent.kind === 'entry') return [intent, thereIf((found !== undefined) === (intent.action !== 'delete'))]
      if (found === undefined) return [intent, entry?.action === 'add' ? 'absent' : 'unknown']
      return [
        intent,
        intent.kind === 'group' ? findMembership(intent, found.groups) : findValue(intent, found.attributes),
      ]
    }),
  )
}

function findMembership({ action, value }: Intent, groups: readonly string[]): Finding {
  if (value === undefined) return 'unknown'
  return thereIf(groups.some((group) => sameLogin(group, value)) === (action !== 'delete'))
}

function findValue({ action, attribute, value }: Intent, attributes: Attributes): Finding {
  if (value === undefined) return 'unknown'
  return thereIf(attributes.values(attribute).includes(value) === (action !== 'delete'))
}

const thereIf = (holds: boolean): Finding => (holds ? 'there' : 'absent')

function requestOf([first]: readonly Intent[], { workflow, log }: FindParts): TargetRequest {
  return {
    workflow,
    idempotencyKey: `${workflow.id}/found`,
    requestor: first?.requestor ?? '',
    params: {},
    log,
    audit: () => {},
  }
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}
