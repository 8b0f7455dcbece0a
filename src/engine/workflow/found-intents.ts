import type { Intent } from '#engine/workflow/intents.ts'
import type { Attributes } from '#identity/attributes.ts'
import type { Logger } from '#kernel/logger.ts'
import { hasGroups, hasLookups, type Target, type TargetRequest } from '#sdk/target/target.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'

/** What became of changes that were about to be made when whoever made them died. */
export interface FoundIntents {
  readonly there: readonly Intent[]
  /** Not, or not yet: the target may still be at it. */
  readonly absent: readonly Intent[]
  /** Nobody can tell by reading: a password, a user whom the target does not know by the login. */
  readonly unknown: readonly Intent[]
}

export interface FindParts {
  target(name: string): Target
  readonly workflow: { readonly id: string; readonly name: string }
  readonly log: Logger
}

type Finding = 'there' | 'absent' | 'unknown'

/** Reads only. Throws what targets throw. */
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

/** Whoever has another login at the target than in the workflow is not found by it, and so nothing is known. */
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
