import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

/** `bulkId:x` in place of an id stands for the resource that the operation with bulkId x creates (RFC 7644 3.7.2). */
const prefix = 'bulkId:'

/** The bulkIds that a value refers to. Depth is that of the body, which is bounded where it is parsed. */
export function referencesIn(value: JsonValue, into = new Set<string>()): Set<string> {
  if (typeof value === 'string') {
    if (value.startsWith(prefix)) into.add(value.slice(prefix.length))
  } else if (Array.isArray(value)) {
    for (const item of value) referencesIn(item, into)
  } else if (isJsonObject(value)) {
    for (const item of Object.values(value)) referencesIn(item, into)
  }
  return into
}

/** The value with ids in place of those references that are known. */
export function resolveReferences(value: JsonValue, ids: ReadonlyMap<string, string>): JsonValue {
  if (typeof value === 'string') {
    return value.startsWith(prefix) ? (ids.get(value.slice(prefix.length)) ?? value) : value
  }
  if (Array.isArray(value)) return value.map((item: JsonValue) => resolveReferences(item, ids))
  return isJsonObject(value) ? resolveObject(value, ids) : value
}

export const resolveObject = (object: JsonObject, ids: ReadonlyMap<string, string>): JsonObject =>
  Object.fromEntries(Object.entries(object).map(([name, item]) => [name, resolveReferences(item, ids)]))

/** The bulkId in the place of an id at the end of a path. */
export function pathReference(path: string): string | undefined {
  const last = path.slice(path.lastIndexOf('/') + 1)
  const match = /^bulkId(?::|%3A)(.*)$/is.exec(last)?.[1]
  if (match === undefined) return undefined
  try {
    return decodeURIComponent(match)
  } catch {
    return match
  }
}

export const resolvePath = (path: string, id: string): string =>
  path.slice(0, path.lastIndexOf('/') + 1) + encodeURIComponent(id)

export interface Deferred {
  /** What can be created at once. */
  readonly data: JsonObject
  /** Operations of a PATCH that add the rest. */
  readonly operations: readonly JsonObject[]
}

/** Parts a resource that refers to what is not there yet: whole attributes, and of lists the values that refer to it. */
export function deferReferences(data: JsonObject, open: ReadonlySet<string>): Deferred {
  const operations: JsonObject[] = []
  const part = (object: JsonObject, path: (name: string) => string, outer: boolean): JsonObject =>
    Object.fromEntries(
      Object.entries(object).flatMap(([name, value]): [string, JsonValue][] => {
        if (!refers(value, open)) return [[name, value]]
        if (outer && name.includes(':') && isJsonObject(value)) {
          return [[name, part(value, (inner) => `${name}:${inner}`, false)]]
        }
        const [now, later] = Array.isArray(value) ? divide(value, open) : [undefined, value]
        operations.push({ op: 'add', path: path(name), value: later })
        return now === undefined || now.length === 0 ? [] : [[name, now]]
      }),
    )
  return { data: part(data, (name) => name, true), operations }
}

function divide(list: readonly JsonValue[], open: ReadonlySet<string>): [JsonValue[], JsonValue[]] {
  return [list.filter((item) => !refers(item, open)), list.filter((item) => refers(item, open))]
}

const refers = (value: JsonValue, open: ReadonlySet<string>): boolean => !referencesIn(value).isDisjointFrom(open)
