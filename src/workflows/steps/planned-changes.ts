import { z } from 'zod'
import type { Attributes } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { parseObjectPath } from '#protocols/kubernetes/cluster.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { type ClusterObjects, isCluster } from '#sdk/target/kubernetes-cluster.ts'
import { hasGroups, hasLookups, type Target, type TargetChange, type TargetRequest } from '#sdk/target/target.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import type { AuditPlace, AuditTrail } from './audit-trail.ts'

/**
 * A change that a step plans to make at a target, in the form of an audit entry. It is stored with the run before
 * the target is called: if the outcome of the call is unknown, the next attempt finds by reading that the change
 * was made, and the audit still gets its row.
 */
export interface PlannedChange extends AuditEntry {
  /** The group, if it is not about the user. */
  readonly group?: string
}

const maxPlannedChanges = 5_000

export const plannedToJson = (plannedChanges: readonly PlannedChange[]): JsonObject[] =>
  plannedChanges.slice(0, maxPlannedChanges).map(({ time, workflow, ...row }) => ({
    ...present(row),
    time: time.getTime(),
    workflow: { ...workflow },
  }))

/** Without members that are undefined, which JSON lacks. */
const present = (row: Readonly<Record<string, string | number | undefined>>): JsonObject =>
  Object.fromEntries(Object.entries(row).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

const plannedChange = z.object({
  id: z.string(),
  time: z.number().transform((millis) => new Date(millis)),
  requestor: z.string(),
  caller: z.string().exactOptional(),
  subject: z.string(),
  workflow: z.object({ id: z.string(), name: z.string() }),
  target: z.string(),
  kind: z.enum(['entry', 'attribute', 'group']),
  action: z.enum(['add', 'replace', 'delete']),
  attribute: z.string(),
  value: z.string().exactOptional(),
  requestId: z.string().exactOptional(),
  approval: z.string().exactOptional(),
  reason: z.string().exactOptional(),
  group: z.string().exactOptional(),
})

/** Reads what `plannedToJson` wrote. */
export const savedChanges = z.array(plannedChange)

const sameChange = (a: AuditEntry, b: AuditEntry): boolean =>
  a.target === b.target &&
  a.kind === b.kind &&
  a.action === b.action &&
  a.attribute === b.attribute &&
  a.value === b.value &&
  a.subject === b.subject

/** As rows that are not in the audit yet. */
export const plannedChangesOf = (
  trail: AuditTrail,
  place: AuditPlace,
  changes: readonly TargetChange[],
): PlannedChange[] =>
  trail.rowsOf(place, changes).map((row, i) => {
    const group = changes[i]?.group
    return group === undefined ? row : { ...row, group }
  })

/** Planned changes without an audit entry, each once. */
export function unreported(plannedChanges: readonly PlannedChange[], rows: readonly AuditEntry[]): PlannedChange[] {
  return plannedChanges.filter(
    (change, i) =>
      !rows.some((row) => sameChange(row, change)) &&
      !plannedChanges.slice(0, i).some((earlier) => sameChange(earlier, change)),
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
export interface FoundChanges {
  readonly there: readonly PlannedChange[]
  /** Not, or not yet: the target may still work on it. */
  readonly absent: readonly PlannedChange[]
  /** Not visible by reading: a password, or a user with another login at the target. */
  readonly unknown: readonly PlannedChange[]
}

interface FindParts {
  target(name: string): Target
  readonly workflow: { readonly id: string; readonly name: string }
  readonly log: Logger
}

type Finding = 'there' | 'absent' | 'unknown'

/** Only reads. Throws errors of targets. */
export async function findPlannedChanges(
  plannedChanges: readonly PlannedChange[],
  parts: FindParts,
): Promise<FoundChanges> {
  const findings = new Map<PlannedChange, Finding>()
  for (const [name, ofTarget] of groupBy(plannedChanges, ({ target }) => target)) {
    const target = parts.target(name)
    if (isCluster(target)) {
      for (const change of ofTarget) findings.set(change, await findObject(target.objects, change))
      continue
    }
    const request = requestOf(ofTarget, parts)
    const aboutGroups = ofTarget.filter(isAboutGroup)
    for (const change of aboutGroups) findings.set(change, await findInGroup(target, change))
    const aboutUsers = ofTarget.filter((change) => !isAboutGroup(change))
    for (const [, ofUser] of groupBy(aboutUsers, ({ subject }) => subject)) {
      for (const [change, finding] of await findInUser(target, ofUser, request)) findings.set(change, finding)
    }
  }
  const those = (finding: Finding): PlannedChange[] =>
    plannedChanges.filter((change) => findings.get(change) === finding)
  return { there: those('there'), absent: those('absent'), unknown: those('unknown') }
}

const isAboutGroup = ({ kind, attribute, group }: PlannedChange): boolean =>
  group !== undefined || (kind === 'entry' && attribute === 'name')

async function findInGroup(target: Target, { kind, action, attribute, value, group }: PlannedChange): Promise<Finding> {
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

/** The value of such a change is the object's path. Reading does not show whether an object was replaced. */
async function findObject(objects: ClusterObjects, { action, value = '' }: PlannedChange): Promise<Finding> {
  const place = parseObjectPath(value)
  if (place === undefined || action === 'replace') return 'unknown'
  const found = await objects.get(place.resource, place.name)
  const metadata = found?.content['metadata']
  const isEnding = isJsonObject(metadata) && metadata['deletionTimestamp'] !== undefined
  return thereIf((found !== undefined && !isEnding) === (action === 'add'))
}

/** A user with another login at the target is not found, so the outcome is unknown. */
async function findInUser(
  target: Target,
  plannedChanges: readonly PlannedChange[],
  request: TargetRequest,
): Promise<Map<PlannedChange, Finding>> {
  const [first] = plannedChanges
  const entry = plannedChanges.find(({ kind }) => kind === 'entry')
  const login = entry?.value ?? first?.subject ?? ''
  const names = [...new Set(plannedChanges.flatMap(({ kind, attribute }) => (kind === 'attribute' ? [attribute] : [])))]
  const found = await target.findUser(login, names, request)
  return new Map(
    plannedChanges.map((change) => {
      if (change.kind === 'entry') return [change, thereIf((found !== undefined) === (change.action !== 'delete'))]
      if (found === undefined) return [change, entry?.action === 'add' ? 'absent' : 'unknown']
      return [
        change,
        change.kind === 'group' ? findMembership(change, found.groups) : findValue(change, found.attributes),
      ]
    }),
  )
}

function findMembership({ action, value }: PlannedChange, groups: readonly string[]): Finding {
  if (value === undefined) return 'unknown'
  return thereIf(groups.some((group) => sameLogin(group, value)) === (action !== 'delete'))
}

function findValue({ action, attribute, value }: PlannedChange, attributes: Attributes): Finding {
  if (value === undefined) return 'unknown'
  return thereIf(attributes.values(attribute).includes(value) === (action !== 'delete'))
}

const thereIf = (holds: boolean): Finding => (holds ? 'there' : 'absent')

function requestOf([first]: readonly PlannedChange[], { workflow, log }: FindParts): TargetRequest {
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
