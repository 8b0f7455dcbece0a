import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { readAttribute, type ScimResource, writeAttribute } from '#protocols/scim/schema/resource.ts'
import type { AttributeRef, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import type { SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { scimError } from '#protocols/scim/schema/scim-error.ts'

const maxProjectionLength = 4096

/** The named sub-attributes of an attribute; `all` if it is named as a whole. */
type Named = 'all' | Set<SchemaAttribute>
type Names = ReadonlyMap<SchemaAttribute, Named>

/** The attributes that a client requested (RFC 7644 3.9), or those that are returned by default. */
export interface Projection {
  readonly wants: (attribute: string) => boolean
  /** Returns the resource itself if nothing is left out. */
  readonly apply: (resource: JsonObject) => JsonObject
}

/**
 * From the query parameters `attributes` and `excludedAttributes`; if both are given, `attributes` decides. Unknown names
 * are ignored. Undefined if nothing was requested and nothing is hidden. Throws invalidValue if the list is too long.
 */
export function parseProjection(
  schema: ResourceSchema,
  attributes: string | null,
  excluded: string | null,
): Projection | undefined {
  const text = attributes ?? excluded
  if (text === null || text.trim() === '') return defaultProjection(schema)
  if (text.length > maxProjectionLength) {
    throw scimError(
      'invalidValue',
      `attributes and excludedAttributes must not be longer than ${maxProjectionLength} characters. Name fewer attributes.`,
    )
  }
  return projectionOf(schema, readNames(schema, text), attributes !== null)
}

const defaults = new WeakMap<ResourceSchema, { readonly projection: Projection | undefined }>()

/** Leaves out attributes that are returned on request only, or never; undefined if there are none. */
function defaultProjection(schema: ResourceSchema): Projection | undefined {
  let known = defaults.get(schema)
  if (known === undefined) {
    known = { projection: projectionOf(schema, new Map(), false) }
    defaults.set(schema, known)
  }
  return known.projection
}

function projectionOf(schema: ResourceSchema, named: Names, including: boolean): Projection | undefined {
  const views = Array.from(
    schema.attributes(),
    (ref) => [ref, viewOf(ref.attribute, named.get(ref.attribute), including)] as const,
  )
  const limited = views.filter(([, view]) => view !== whole)
  if (limited.length === 0) return undefined
  const shown = views.filter(([, view]) => view !== undefined)
  const names = new Set(shown.map(([{ attribute }]) => attribute.name.toLowerCase()))
  return {
    wants: (name) => names.has(name.toLowerCase()),
    apply: (resource) => {
      let result: ScimResource | undefined
      for (const [ref, view] of limited) {
        const value = readAttribute(resource, ref)
        if (value === undefined) continue
        result ??= { ...resource }
        writeAttribute(result, ref, view?.(value))
      }
      return result ?? resource
    },
  }
}

function readNames(schema: ResourceSchema, text: string): Names {
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

/**
 * How an attribute is shown; undefined if it is not. `returned` with `always` or `never` overrides the request, for an
 * attribute and for its parts.
 */
function viewOf(attribute: SchemaAttribute, named: Named | undefined, including: boolean): View | undefined {
  const { returned, subAttributes } = attribute
  if (returned === 'never') return undefined
  const asked = named !== undefined && including
  if (returned === 'request' && !asked) return undefined
  const gone = including ? named === undefined : named === 'all'
  if (gone && returned !== 'always') return undefined
  const parts = gone ? undefined : named
  const hidden = subAttributes.filter((sub) => !isShown(sub, parts, including)).map(({ name }) => name)
  if (hidden.length === 0) return whole
  const part = (value: JsonValue): JsonValue =>
    isJsonObject(value) ? Object.fromEntries(Object.entries(value).filter(([name]) => !hidden.includes(name))) : value
  return (value) => (Array.isArray(value) ? value.map(part) : part(value))
}

function isShown(sub: SchemaAttribute, named: Named | undefined, including: boolean): boolean {
  if (sub.returned === 'always' || sub.returned === 'never') return sub.returned === 'always'
  const isNamed = named instanceof Set && named.has(sub)
  if (sub.returned === 'request') return including && isNamed
  return named === undefined || named === 'all' || isNamed === including
}
