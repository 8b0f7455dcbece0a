import type { ConfigDocument } from '#config/context/config-document.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'

/** Something that configurations should no longer use. It works until it is removed. */
export type Deprecation = {
  /** The version that deprecated it. */
  readonly since: string
  /** The day before which no release removes it, such as `2027-06-30`: at least six months after `since`. */
  readonly removal: string
  /** What to use instead, as the end of a sentence: `use "x"`. */
  readonly instead: string
} & (
  | { readonly kind: string; readonly version: string }
  /** A path such as `spec.azTimeoutMillis`. */
  | { readonly kind: string; readonly field: string }
  /** The class's own name; its aliases count as well. */
  | { readonly className: string; readonly param?: string }
)

/** Everything that is deprecated. `check` and `serve` warn of it, and docs/reference/deprecations.md lists it. */
export const deprecations: readonly Deprecation[] = []

/** Such as `the parameter "x" of filters.Main`. */
export function deprecatedThing(entry: Deprecation): string {
  if ('version' in entry) return `version ${entry.version} of ${entry.kind}`
  if ('field' in entry) return `the field "${entry.field}" of ${entry.kind}`
  return entry.param === undefined
    ? `the class ${entry.className}`
    : `the parameter "${entry.param}" of ${entry.className}`
}

interface WrittenObject {
  readonly kind: string
  readonly value: unknown
  readonly document: ConfigDocument
}

/** Adds a warning for each use. `ownName` gives a class's own name for any of its names. */
export function warnOfDeprecations(
  objects: readonly WrittenObject[],
  issues: Issues,
  ownName: (className: string) => string,
  table: readonly Deprecation[] = deprecations,
): void {
  if (table.length === 0) return
  for (const { kind, value, document } of objects) {
    for (const entry of table) {
      for (const path of usesOf(entry, kind, value, ownName)) {
        const { since, removal, instead } = entry
        issues
          .for(document)
          .warning(path, `${deprecatedThing(entry)} is deprecated since ${since} and ends on ${removal}: ${instead}`)
      }
    }
  }
}

function usesOf(entry: Deprecation, kind: string, value: unknown, ownName: (className: string) => string): Path[] {
  if ('className' in entry) {
    return Array.from(classesIn(value, []))
      .filter(({ map }) => ownName(String(map['className'])) === entry.className)
      .flatMap(({ map, path }) =>
        entry.param === undefined ? [[...path, 'className']] : paramPaths(map, path, entry.param),
      )
  }
  if (entry.kind !== kind || !isJsonObject(value)) return []
  if ('version' in entry) {
    return String(value['apiVersion']).split('/').at(-1) === entry.version ? [['apiVersion']] : []
  }
  const path = entry.field.split('.')
  const found = path.reduce<unknown>((at, key) => (isJsonObject(at) ? at[key] : undefined), value)
  return found === undefined ? [] : [path]
}

/** Each map with a `className`, at any depth. */
function* classesIn(value: unknown, path: Path): Generator<{ readonly map: JsonObject; readonly path: Path }> {
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) yield* classesIn(item, [...path, i])
  } else if (isJsonObject(value)) {
    if (typeof value['className'] === 'string') yield { map: value, path }
    for (const [key, item] of Object.entries(value)) yield* classesIn(item, [...path, key])
  }
}

/** Parameters are a map, or a list of names and values; a mechanism calls them `init`. */
function paramPaths(map: JsonObject, path: Path, name: string): Path[] {
  return ['params', 'init', 'secretParams'].flatMap((key): Path[] => {
    const params = map[key]
    if (Array.isArray(params)) {
      return params.flatMap((item, i) => (isJsonObject(item) && item['name'] === name ? [[...path, key, i]] : []))
    }
    return isJsonObject(params) && params[name] !== undefined ? [[...path, key, name]] : []
  })
}
