import { isSecretAttribute } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { isForbiddenKey, type JsonObject } from '#kernel/json.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'
import type { WorkflowUser } from '#sdk/workflow/workflow-task.ts'

const maxNames = 100
const maxValues = 20
const maxLength = 2000
/** Characters of all that is shown. */
const maxTotal = 64 * 1024

/** While memberships are unknown, the groups that the user is to join are among the changes. */
export type RequestedUser = User & Partial<Pick<WorkflowUser, 'keepGroups' | 'groupChanges'>>

/**
 * What approvers are shown: the subject's attributes and groups, and the request's parameters. Passwords and whatever is
 * named like a secret are left out, as are the keys of the engine; long lists and texts are cut.
 */
export function approvalData(user: RequestedUser, request: ReadonlyMap<string, unknown>): JsonObject {
  let left = maxTotal
  const cut = (text: string): string => {
    const shown = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
    left -= shown.length
    return left < 0 ? '…' : shown
  }
  const parameters: Record<string, string> = Object.create(null)
  for (const [name, value] of shownOf(request)) {
    if (typeof value === 'string' && !isEngineKey(name)) parameters[name] = cut(value)
  }
  const attributes: Record<string, readonly string[]> = Object.create(null)
  for (const [name, values] of shownOf(user.attributes)) attributes[name] = values.slice(0, maxValues).map(cut)
  const groups = user.keepGroups === true ? (user.groupChanges?.add ?? []) : user.groups
  return { attributes, groups: groups.slice(0, maxNames).map(cut), parameters }
}

function shownOf<V>(source: Iterable<readonly [string, V]>): (readonly [string, V])[] {
  return [...source].filter(([name]) => !isSecretAttribute(name) && !isForbiddenKey(name)).slice(0, maxNames)
}
