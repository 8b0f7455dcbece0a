import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { PluginAnswerReader } from '#modules/shared/plugin/plugin-answer.ts'
import { isEngineKey } from '#sdk/workflow/engine-keys.ts'
import type { RequestMap, TaskContext } from '#sdk/workflow/workflow-task.ts'
import { setGroups } from '#sdk/workflow/workflow-user.ts'

/** What `doTask` is given of the user and the request: data only, and no password. */
export interface TaskState {
  readonly user: JsonObject
  readonly request: JsonObject
}

export function plainTaskState({ user, request }: Pick<TaskContext, 'user' | 'request'>): TaskState {
  const { userID, groups, requestReason } = user
  const reason = requestReason === undefined ? {} : { requestReason }
  const plain: Record<string, JsonValue> = Object.create(null)
  for (const [key, value] of request) {
    const text = jsonOf(value)
    if (text !== undefined) plain[key] = JSON.parse(text) as JsonValue
  }
  return { user: { userID, attributes: user.attributes.toObject(), groups: [...groups], ...reason }, request: plain }
}

/**
 * Puts into the workflow what the function left in its arguments. Throws, and changes nothing, when that is not a user
 * and a request, or when a key of the engine was set.
 */
export function applyTaskChanges(
  context: Pick<TaskContext, 'user' | 'request'>,
  sent: TaskState,
  args: readonly JsonValue[],
  reader: PluginAnswerReader,
): void {
  const changed = reader.object(args[0], 'user')
  const request = reader.object(args[1], 'request')
  const userID = reader.text(changed['userID'], 'user.userID')
  const attributes = reader.attributes(changed['attributes'])
  const groups = reader.texts(changed['groups'], 'user.groups')
  const keys = changedKeys(sent.request, request)
  for (const key of keys) {
    if (isEngineKey(key)) throw reader.malformed(`the request key "${key}" belongs to the engine and cannot be set`)
  }

  context.user.userID = userID
  context.user.attributes = attributes
  if (jsonOf(groups) !== jsonOf(sent.user['groups'])) setGroups(context.user, groups)
  for (const key of keys) setKey(context.request, key, request)
}

function changedKeys(sent: JsonObject, request: JsonObject): string[] {
  const all = new Set([...Object.keys(sent), ...Object.keys(request)])
  return [...all].filter((key) => jsonOf(own(sent, key)) !== jsonOf(own(request, key)))
}

function setKey(map: RequestMap, key: string, request: JsonObject): void {
  const value = own(request, key)
  if (value === undefined) map.delete(key)
  else map.set(key, value)
}

const own = (object: JsonObject, key: string): JsonValue | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined

/** Undefined for what is not data. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
