import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { TaskSignal } from '#sdk/workflow-task.ts'

/** What a run waited for, as it is stored. */
export function signalToJson(signal: TaskSignal): JsonObject {
  if (signal.kind === 'time') return { kind: 'time' }
  const { kind, approval, approved, by, onBehalfOf, comment } = signal
  return {
    kind,
    approval,
    approved,
    ...(by === undefined ? {} : { by }),
    ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    ...(comment === undefined ? {} : { comment }),
  }
}

/** Undefined for what is no signal. */
export function signalFromJson(value: JsonValue | undefined): TaskSignal | undefined {
  if (!isJsonObject(value)) return undefined
  const { kind, approval, approved } = value
  if (kind === 'time') return { kind }
  if (kind !== 'approval' || typeof approval !== 'string' || typeof approved !== 'boolean') return undefined
  return { kind, approval, approved, ...text('by', value), ...text('onBehalfOf', value), ...text('comment', value) }
}

function text<K extends string>(name: K, object: JsonObject): { readonly [N in K]?: string } {
  const value = object[name]
  return typeof value === 'string' ? ({ [name]: value } as { readonly [N in K]?: string }) : {}
}
