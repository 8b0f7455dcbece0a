import type { Attributes } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { nearestName, suggestion } from '#kernel/suggest.ts'
import { readAttribute, type ScimResource, sameValue, writeAttribute } from '#protocols/scim/resource.ts'
import {
  type AttributePath,
  type AttributeRef,
  internalName,
  isCore,
  type ResourceSchema,
} from '#protocols/scim/resource-schema.ts'
import { defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema.ts'
import { quoted, scimError } from '#protocols/scim/scim-error.ts'
import type { IgnoredAttributes } from './gateway-config.ts'
import type { StoredSchema } from './stored-schema.ts'

export type ChangeKind = 'create' | 'patch' | 'put'

/**
 * The wanted resource without attributes that cannot be stored. A change of such an attribute is refused: with invalidPath
 * in a PATCH, with invalidValue in a PUT. It is dropped if the gateway ignores the attribute, if a PUT leaves the attribute
 * out, and in a create, whose answer shows what was stored. An account without a mapped `active` is active.
 */
export function storableChange(
  stored: StoredSchema,
  schema: ResourceSchema,
  before: JsonObject,
  after: ScimResource,
  { kind, ignored }: { readonly kind: ChangeKind; readonly ignored: IgnoredAttributes },
): ScimResource {
  const result: ScimResource = { ...after }
  for (const path of changedPaths(schema, before, after)) {
    const reason = stored.whyNot(path)
    if (reason === undefined) continue
    const isActive = isCore(path, 'active')
    const value = valueAt(after, path) ?? (isActive ? true : undefined)
    const isSame = isActive && value === (valueAt(before, path) ?? true)
    const isDropped = ignored.has(path) || (kind === 'create' ? !isActive : kind === 'put' && value === undefined)
    if (!isSame && !isDropped) throw scimError(kind === 'patch' ? 'invalidPath' : 'invalidValue', reason)
    putAt(result, path, valueAt(before, path))
  }
  return result
}

/** Names that some clients always send and that carry nothing. */
const habits = [/^http:\/\/schemas\.microsoft\.com\//i]

const commonStart = /^urn:ietf:params:scim:schemas:(?:extension:)?/i

/** Whether a URN is a misspelling of a known schema, rather than that of an unknown one. */
function isMisspelled(urn: string, { core, extensions }: ResourceSchema): boolean {
  const ids = [core, ...extensions].map(({ id }) => id.replace(commonStart, ''))
  return nearestName(urn.replace(commonStart, ''), ids) !== undefined
}

/**
 * Refuses names that are not in any schema, and suggests a similar one. In a create they are dropped, like attributes that
 * are not mapped, except for a misspelled URN, which would drop a whole extension.
 */
export const refuseUnknown =
  (schema: ResourceSchema, kind: ChangeKind, ignored: IgnoredAttributes) =>
  (name: string): void => {
    const isUrn = /^(?:urn|https?):/i.test(name)
    const isDropped = kind === 'create' && (!isUrn || !isMisspelled(name, schema))
    if (isDropped || ignored.hasName(name) || habits.some((habit) => habit.test(name))) return
    const refs = Array.from(schema.attributes())
    const known = isUrn
      ? [schema.core, ...schema.extensions].flatMap(({ id, attributes }) => [
          id,
          ...attributes.map((attribute) => `${id}:${attribute.name}`),
        ])
      : refs.flatMap(({ attribute }) => [
          attribute.name,
          ...attribute.subAttributes.map((sub) => `${attribute.name}.${sub.name}`),
        ])
    const what = isUrn ? 'schema or attribute' : 'attribute'
    const text = `There is no ${what} ${quoted(name)}${suggestion(name, known)}. Correct the name, or list it in ignoreUnmapped.`
    throw scimError(kind === 'patch' ? 'invalidPath' : isUrn ? 'invalidSyntax' : 'invalidValue', text)
  }

export interface Effect {
  readonly before: JsonObject
  readonly wanted: JsonObject
  readonly after: JsonObject
  readonly stored: { readonly before: Attributes; readonly after: Attributes }
}

/**
 * Throws WORKFLOW_FAILED if an attribute was to change, but neither its SCIM value nor its stored values did. Without this,
 * the client would take the request for successful.
 */
export function requireEffect(stored: StoredSchema, schema: ResourceSchema, workflow: string, effect: Effect): void {
  const { before, wanted, after } = effect
  for (const path of changedPaths(schema, before, wanted)) {
    if (!stored.isShown(path) || stored.whyNot(path) !== undefined) continue
    const leaf = path.sub ?? path.attribute
    const was = valueAt(before, path)
    if (isSame(leaf, was, valueAt(wanted, path)) || !isSame(leaf, was, valueAt(after, path))) continue
    const isStored = stored
      .namesOf(path)
      .some((name) => !sameValue(effect.stored.before.values(name), effect.stored.after.values(name)))
    if (isStored) continue
    const name = internalName(path)
    throw new GatewayError('WORKFLOW_FAILED', `workflow "${workflow}" ended without changing "${name}"`, {
      publicText: `"${name}" did not change: workflow "${workflow}" ended without writing it. Check its tasks and the mapping of "${name}".`,
    })
  }
}

/** Throws if the mapping converts the new values to the same internal values as the old ones, so nothing would change. */
export function requireMappedChange(
  stored: StoredSchema,
  schema: ResourceSchema,
  before: JsonObject,
  wanted: JsonObject,
  kind: ChangeKind,
): void {
  for (const path of changedPaths(schema, before, wanted)) {
    const leaf = path.sub ?? path.attribute
    // A PUT repeats lists as the client has them, and a mapping may store only a part of them.
    if (isCore(path, 'userName') || leaf.returned === 'never' || (kind === 'put' && leaf.multiValued)) continue
    if (!stored.isShown(path) || isSame(leaf, valueAt(before, path), valueAt(wanted, path))) continue
    const name = internalName(path)
    const text = `"${name}" cannot be changed to this value: the mapping stores it like the present one. Send another value, or change the mapping.`
    throw scimError(kind === 'patch' ? 'invalidPath' : 'invalidValue', text)
  }
}

/** The attributes that differ; of a complex attribute without `value`, its parts that differ. */
function changedPaths(schema: ResourceSchema, before: JsonObject, after: JsonObject): AttributePath[] {
  return Array.from(schema.attributes()).flatMap((ref: AttributeRef): AttributePath[] => {
    const { attribute } = ref
    const [was, is] = [readAttribute(before, ref), readAttribute(after, ref)]
    if (attribute.mutability === 'readOnly' || sameValue(was, is)) return []
    if (attribute.type !== 'complex' || attribute.multiValued || defaultSubAttribute(attribute)) return [ref]
    return attribute.subAttributes
      .map((sub) => ({ ...ref, sub }))
      .filter((path) => !sameValue(valueAt(before, path), valueAt(after, path)))
  })
}

function valueAt(resource: JsonObject, { sub, ...ref }: AttributePath): JsonValue | undefined {
  const value = readAttribute(resource, ref)
  return sub === undefined ? value : isJsonObject(value) ? value[sub.name] : undefined
}

function putAt(resource: ScimResource, path: AttributePath, value: JsonValue | undefined): void {
  const { sub, ...ref } = path
  const whole = sub === undefined ? undefined : readAttribute(resource, ref)
  if (sub === undefined) {
    writeAttribute(resource, ref, value)
    return
  }
  const { [sub.name]: _, ...others } = isJsonObject(whole) ? whole : {}
  writeAttribute(resource, ref, value === undefined ? others : { ...others, [sub.name]: value })
}

/** Equal to a client: letter case, order and the parts besides `value` do not count. */
function isSame(leaf: SchemaAttribute, a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  return sameValue(essence(leaf, a), essence(leaf, b))
}

function essence(leaf: SchemaAttribute, value: JsonValue | undefined): JsonValue {
  if (value === undefined || value === null) return null
  const list = Array.isArray(value) ? value : [value as JsonValue]
  const sub = leaf.type === 'complex' ? defaultSubAttribute(leaf)?.name : undefined
  const plain = list.map((one: JsonValue) => (sub !== undefined && isJsonObject(one) ? (one[sub] ?? null) : one))
  return plain.map((one) => JSON.stringify(one).toLowerCase()).sort()
}
