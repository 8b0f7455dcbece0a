import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { readAttribute, type ScimResource, writeAttribute } from '#protocols/scim/resource.ts'
import type { AttributeRef, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { SchemaAttribute } from '#protocols/scim/schema.ts'

export const maxProjectionLength = 4096

/** Which sub-attributes of an attribute are named; `all` when it is named as a whole. */
type Named = 'all' | Set<SchemaAttribute>

/** What a client asked to see (RFC 7644 3.9). Without one, everything that is returned by default. */
export interface Projection {
  readonly wants: (attribute: string) => boolean
  readonly apply: (resource: JsonObject) => ScimResource
}

/**
 * From the query parameters `attributes` and `excludedAttributes`; where both are given, the first decides.
 * Unknown names are ignored. Undefined when nothing was asked.
 */
export function parseProjection(
  schema: ResourceSchema,
  attributes: string | null,
  excluded: string | null,
): Projection | undefined {
  const text = attributes ?? excluded
  if (text === null || text.trim() === '') return undefined
  const named = readNames(schema, text.slice(0, maxProjectionLength))
  const including = attributes !== null
  const refs = Array.from(schema.attributes())
  const shown = new Map(
    refs.flatMap((ref) => {
      const view = viewOf(ref.attribute, named.get(ref.attribute), including)
      return view === undefined ? [] : [[ref, view] as const]
    }),
  )
  const names = new Set(Array.from(shown.keys(), (ref) => ref.attribute.name.toLowerCase()))
  return {
    wants: (name) => names.has(name.toLowerCase()),
    apply: (resource) => {
      const result: ScimResource = {}
      for (const [ref, view] of shown) {
        const value = readAttribute(resource, ref)
        if (value !== undefined) writeAttribute(result, ref, view(value))
      }
      return result
    },
  }
}

function readNames(schema: ResourceSchema, text: string): ReadonlyMap<SchemaAttribute, Named> {
  const named = new Map<SchemaAttribute, Named>()
  const add = ({ attribute }: AttributeRef, sub: SchemaAttribute | undefined): void => {
    const before = named.get(attribute)
    if (sub === undefined || before === 'all') named.set(attribute, 'all')
    else named.set(attribute, (before ?? new Set()).add(sub))
  }
  for (const name of text.split(',')) {
    const resolved = schema.resolve(name.trim())
    if (resolved?.kind === 'attribute') add(resolved, resolved.sub)
    else if (resolved?.kind === 'schema')
      for (const attribute of resolved.schema.attributes) add({ attribute }, undefined)
  }
  return named
}

type View = (value: JsonValue) => JsonValue

const whole: View = (value) => value

/** How an attribute is shown; undefined when it is not. `returned: always` wins over any wish, `never` too. */
function viewOf(attribute: SchemaAttribute, named: Named | undefined, including: boolean): View | undefined {
  if (attribute.returned === 'always') return whole
  if (attribute.returned === 'never') return undefined
  if (named === undefined) return including || attribute.returned === 'request' ? undefined : whole
  if (named === 'all') return including ? whole : undefined
  const names = new Set(Array.from(named, (sub) => sub.name))
  const part = (value: JsonValue): JsonValue =>
    isJsonObject(value)
      ? Object.fromEntries(Object.entries(value).filter(([name]) => names.has(name) === including))
      : value
  return (value) => (Array.isArray(value) ? value.map(part) : part(value))
}
