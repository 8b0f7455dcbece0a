import { isSecretAttribute } from '#identity/secret-attribute.ts'
import type { User } from '#identity/user.ts'
import { isForbiddenKey, type JsonObject } from '#kernel/json.ts'
import { isEngineKey } from '#sdk/engine-keys.ts'

const maxNames = 100
const maxValues = 20
const maxLength = 2000
/** Characters of all that is shown. */
const maxTotal = 64 * 1024

/**
 * What approvers are shown: the subject's attributes and groups, and the request's parameters. Passwords and whatever is
 * named like a secret are left out, as are the keys of the engine; long lists and texts are cut.
 */
export function approvalData(user: User, request: ReadonlyMap<string, unknown>): JsonObject {
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
  return { attributes, groups: user.groups.slice(0, maxNames).map(cut), parameters }
}

function shownOf<V>(source: Iterable<readonly [string, V]>): (readonly [string, V])[] {
  return [...source].filter(([name]) => !isSecretAttribute(name) && !isForbiddenKey(name)).slice(0, maxNames)
}
