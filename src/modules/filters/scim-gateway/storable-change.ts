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
 * The wanted resource without what can't be stored. A change of such an attribute is refused: by invalidPath in a PATCH,
 * by invalidValue in a PUT. It's dropped where the gateway ignores it, where a PUT leaves out what it couldn't change
 * anyway, and at a creation, whose answer shows what was kept. An account without a mapped `active` is active.
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

/** Names that clients are known to send beside what they mean: nothing is lost with them. */
const habits = [/^http:\/\/schemas\.microsoft\.com\//i]

const commonStart = /^urn:ietf:params:scim:schemas:(?:extension:)?/i

/** Whether a URN is that of a known schema, spelled wrong, rather than that of a schema that no one here knows. */
function isMisspelled(urn: string, { core, extensions }: ResourceSchema): boolean {
  const ids = [core, ...extensions].map(({ id }) => id.replace(commonStart, ''))
  return nearestName(urn.replace(commonStart, ''), ids) !== undefined
}

/**
 * Refuses names that no schema has, and says which one is near. At a creation they are dropped, as what isn't mapped is; but
 * a URN that is spelled wrong would take a whole extension with it.
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

/** What was there before a change, and after it. */
export interface Effect {
  readonly before: JsonObject
  readonly wanted: JsonObject
  readonly after: JsonObject
  readonly stored: { readonly before: Attributes; readonly after: Attributes }
}

/**
 * Throws WORKFLOW_FAILED where an attribute was to change and neither what clients see of it nor what is stored of it has:
 * no client must take that for success.
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
    throw new GatewayError('WORKFLOW_FAILED', `workflow "${workflow}" ended, but "${name}" is what it was`, {
      publicText: `"${name}" is still what it was: workflow "${workflow}" ended without changing it. Check its tasks and the mapping of "${name}".`,
    })
  }
}

/** Throws where the mapping makes the same of the new values as of the old ones, so that nothing would be stored. */
export function requireMappedChange(
  stored: StoredSchema,
  schema: ResourceSchema,
  before: JsonObject,
  wanted: JsonObject,
  kind: ChangeKind,
): void {
  for (const path of changedPaths(schema, before, wanted)) {
    const leaf = path.sub ?? path.attribute
    // A PUT repeats lists as the client has them, of which a mapping may keep a part.
    if (isCore(path, 'userName') || leaf.returned === 'never' || (kind === 'put' && leaf.multiValued)) continue
    if (!stored.isShown(path) || isSame(leaf, valueAt(before, path), valueAt(wanted, path))) continue
    const name = internalName(path)
    const text = `"${name}" cannot be changed to this: the mapping makes the same of it as of the present value.`
    throw scimError(kind === 'patch' ? 'invalidPath' : 'invalidValue', text)
  }
}

/** Attributes that differ; parts of them where a complex value has no `value` that stands for it. */
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

/** Whether a client would call it the same: letter case, order and what is said beside a `value` don't count. */
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
