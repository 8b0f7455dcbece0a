import { Attributes } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { type ReadOptions, readValue } from '#protocols/scim/read-resource.ts'
import { readAttribute, type ScimResource, sameValue, writeAttribute } from '#protocols/scim/schema/resource.ts'
import type { AttributePath, AttributeRef, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { internalName } from '#protocols/scim/schema/resource-schema.ts'
import { defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { decoder, encodeList } from '#protocols/scim/stored-value.ts'

/** One attribute, or a part of one, with its new value; undefined removes it. */
export interface Edit {
  readonly path: AttributePath
  readonly value: JsonValue | undefined
  /** It has no value now. */
  readonly isNew: boolean
}

interface EditOptions {
  /** The attributes that may change. */
  readonly attributes: readonly string[]
  readonly addOnly: boolean
}

const serverValues: ReadOptions = { readOnly: 'keep', maxValues: 10_000 }

/** Maps a schema's resources to internal attributes and back, by the names of the SCIM gateway's built-in mapping. */
export class ResourceMapping {
  readonly slots: SlotTable
  readonly #schema: ResourceSchema
  /** Names in lower case of the resource's own name, which are not written as attributes. */
  readonly #names: ReadonlySet<string>
  /** A list whose elements all need a type, and one of them the mark `primary`. */
  readonly #typed: string | undefined

  constructor(schema: ResourceSchema, own: ReadonlySet<string>, names: readonly string[], typed?: string) {
    this.#schema = schema
    this.slots = slotsOf(schema, own)
    this.#names = new Set(names)
    this.#typed = typed
  }

  /** A server's resource with names in the schema's spelling. Values of a wrong type are left out and reported. */
  normalize(raw: JsonObject, report: (attribute: string, error: unknown) => void): ScimResource {
    const resource: ScimResource = {}
    const take = (path: AttributeRef, value: JsonValue): void => {
      try {
        const read = readValue(this.#schema, path.attribute, value, serverValues)
        if (read !== undefined) writeAttribute(resource, path, withoutBlanks(path.attribute, read))
      } catch (error) {
        report(path.attribute.name, error)
      }
    }
    for (const [name, value] of Object.entries(raw)) {
      const resolved = this.#schema.resolve(name, true)
      if (resolved?.kind === 'attribute' && resolved.sub === undefined) take(resolved, value)
      // Some servers write a part of an attribute as a member of its own: "name.formatted".
      else if (resolved?.kind === 'attribute' && resolved.sub !== undefined && !resolved.attribute.multiValued) {
        const parts = readAttribute(resource, resolved)
        take(resolved, { ...(isJsonObject(parts) ? parts : {}), [resolved.sub.name]: value })
      } else if (resolved?.kind === 'schema' && resolved.extension !== undefined && isJsonObject(value)) {
        for (const [inner, part] of Object.entries(value)) {
          const path = this.#schema.resolveAttribute(`${resolved.extension}:${inner}`, true)
          if (path !== undefined && path.sub === undefined) take(path, part)
        }
      }
    }
    return resource
  }

  /** The attributes of a normalized resource. */
  attributes(resource: JsonObject): Attributes {
    const attributes = new Attributes()
    for (const slot of this.slots.byName.values()) {
      const values = textsOf(slot, readPath(resource, slot.path))
      if (values.length > 0) attributes.set(slot.name, values)
    }
    return attributes
  }

  /**
   * The edits that give the listed attributes the wanted values; with addOnly, these values in addition. Order and
   * repetition of values are ignored. Attributes that only the server sets are skipped. Throws BAD_REQUEST, with the
   * attribute's name, for a value that the server cannot store.
   */
  edits(held: JsonObject, wanted: Attributes, { attributes, addOnly }: EditOptions): Edit[] {
    const listed = new Set(attributes.map((name) => name.toLowerCase()))
    for (const name of attributes) {
      const key = name.toLowerCase()
      if (this.slots.byName.has(key) || this.#names.has(key) || wanted.values(name).length === 0) continue
      throw unfit(name, 'the server has no such attribute')
    }
    return this.slots.written.flatMap((slot) => {
      if (!listed.has(slot.name.toLowerCase())) return []
      const elements = slot.kind === 'values' ? wholeName(slot, this.slots.written) : undefined
      // A list with whole elements takes precedence over the list of their values.
      if (elements !== undefined && listed.has(elements.toLowerCase()) && wanted.has(elements)) return []
      const texts = [...new Set(wanted.values(slot.name))]
      const values = slot.kind === 'elements' && texts.length === 0 && hasValues(slot, listed, wanted)
      return values ? [] : this.#edit(slot, readPath(held, slot.path), texts, addOnly)
    })
  }

  #edit(slot: Slot, held: JsonValue | undefined, texts: readonly string[], addOnly: boolean): Edit[] {
    const { path } = slot
    const isNew = held === undefined
    if (addOnly && texts.length === 0) return []
    const leaf = slot.kind === 'plain' ? slot.leaf : path.attribute
    if (!leaf.multiValued) {
      if (texts.length > 1) throw unfit(slot.name, 'the server holds one value of it')
      if (addOnly && !isNew) return []
      const [text] = texts
      const value = text === undefined ? undefined : this.#value(slot.name, leaf, text)
      return sameValue(held, value) ? [] : [{ path, value, isNew }]
    }
    const before = Array.isArray(held) ? held : []
    const named = texts.map((text) => this.#element(slot, before, text))
    const after = addOnly ? [...before, ...named.filter((one) => !includes(before, one))] : named
    if (after.length === before.length && after.every((one) => includes(before, one))) return []
    const target = slot.kind === 'values' ? wholeOf(path) : path
    const value = path.attribute.name === this.#typed ? withTypes(after) : after
    return [{ path: target, value: value.length === 0 ? undefined : value, isNew }]
  }

  #element(slot: Slot, held: readonly JsonValue[], text: string): JsonValue {
    if (slot.kind === 'plain') return this.#value(slot.name, slot.leaf, text)
    if (slot.kind === 'elements') return this.#value(slot.name, slot.path.attribute, text)
    const { sub } = slot.path
    if (text === '') throw unfit(slot.name, 'an empty text is not a value')
    // The other parts of a value stay.
    const known = held.find((element) => isJsonObject(element) && element[sub.name] === text)
    return known ?? { [sub.name]: this.#value(slot.name, sub, text) }
  }

  #value(name: string, leaf: SchemaAttribute, text: string): JsonValue {
    if (!text.isWellFormed() || text.includes('\0'))
      throw unfit(name, 'it holds a NUL character or half a surrogate pair')
    try {
      const decoded = decoder(leaf)(text)
      const value = decoded ?? readValue(this.#schema, { ...leaf, multiValued: false }, jsonOrText(leaf, text))
      if (value !== undefined) return value
    } catch (error) {
      throw unfit(name, 'it is not of the type that the server has', error)
    }
    throw unfit(name, 'it is empty')
  }
}

/** Elements without a type are of `work`, and the first is the primary one if none is. */
function withTypes(elements: readonly JsonValue[]): JsonValue[] {
  const known = elements.filter(isJsonObject)
  const primary = known.find((element) => element['primary'] === true) ?? known[0]
  return known.map((element) => ({ type: 'work', ...element, primary: element === primary }))
}

/** Applies the edits in place, so no part of the resource may be shared. */
export function applyEdits(resource: ScimResource, edits: readonly Edit[]): ScimResource {
  for (const { path, value } of edits) {
    if (path.sub === undefined) {
      writeAttribute(resource, path, value)
      continue
    }
    const before = readAttribute(resource, path)
    const parts: ScimResource = isJsonObject(before) ? { ...before } : {}
    if (value === undefined) delete parts[path.sub.name]
    else parts[path.sub.name] = value
    writeAttribute(resource, path, parts)
  }
  return resource
}

/** BAD_REQUEST that names the attribute and not the value, which may be a secret. */
export const unfit = (attribute: string, reason: string, cause?: unknown): GatewayError =>
  new GatewayError('BAD_REQUEST', `"${attribute}" cannot be written: ${reason}`, {
    cause,
    attribute,
    publicText: (shown = `"${attribute.slice(0, 100)}"`) =>
      `${shown} cannot be written to the server behind: ${reason}.`,
    keyword: 'invalidValue',
  })

function readPath(resource: JsonObject, path: AttributePath): JsonValue | undefined {
  const whole = readAttribute(resource, path)
  if (path.sub === undefined || path.attribute.multiValued) return whole
  return isJsonObject(whole) ? whole[path.sub.name] : undefined
}

function textsOf(slot: Slot, held: JsonValue | undefined): string[] {
  if (held === undefined) return []
  const list = Array.isArray(held) ? held : [held]
  if (slot.kind === 'plain') return encodeList(slot.leaf, list)
  if (slot.kind === 'elements') return encodeList(slot.path.attribute, list)
  const { name } = slot.path.sub
  const elements = list.filter(isJsonObject)
  const primaryFirst = [
    ...elements.filter(({ primary }) => primary === true),
    ...elements.filter(({ primary }) => primary !== true),
  ]
  return primaryFirst.flatMap((element) => {
    const value = element[name]
    return typeof value === 'string' && value !== '' ? [value] : []
  })
}

const includes = (list: readonly JsonValue[], value: JsonValue): boolean => list.some((one) => sameValue(one, value))

const wholeName = ({ path }: Slot, slots: readonly Slot[]): string | undefined =>
  slots.find((slot) => slot.kind === 'elements' && slot.path.attribute === path.attribute)?.name

/** The list is given only by its values, which another slot writes. */
function hasValues(slot: Slot, listed: ReadonlySet<string>, wanted: Attributes): boolean {
  const name = `${slot.name}.value`
  return listed.has(name.toLowerCase()) && wanted.has(name)
}

/** SCIM treats an element without content as absent. */
function withoutBlanks({ type, multiValued }: SchemaAttribute, value: JsonValue): JsonValue {
  if (type !== 'complex' || !multiValued || !Array.isArray(value)) return value
  return value.filter(
    (element: JsonValue) => !isJsonObject(element) || Object.values(element).some((one) => one !== ''),
  )
}

const wholeOf = ({ attribute, extension }: AttributePath): AttributePath =>
  extension === undefined ? { attribute } : { attribute, extension }

function jsonOrText({ type }: SchemaAttribute, text: string): JsonValue {
  if (type !== 'complex' || !/^\s*\{/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The part of a resource that is one internal attribute, named as in the SCIM gateway's built-in mapping. */
type Slot =
  /** One value, or a list of plain ones: of an attribute, or of a part of a single complex one. */
  | { readonly kind: 'plain'; readonly name: string; readonly path: AttributePath; readonly leaf: SchemaAttribute }
  /** A list of complex values, each as JSON text. */
  | { readonly kind: 'elements'; readonly name: string; readonly path: AttributeRef }
  /** The same list, only by the values of its default sub-attribute. */
  | {
      readonly kind: 'values'
      readonly name: string
      readonly path: AttributeRef & { readonly sub: SchemaAttribute }
    }

interface SlotTable {
  /** Those that can be written. */
  readonly written: readonly Slot[]
  /** By name in lower case. */
  readonly byName: ReadonlyMap<string, Slot & { readonly readOnly: boolean }>
}

/** `own` are core attributes that are not attributes of users or groups here. */
function slotsOf(schema: ResourceSchema, own: ReadonlySet<string>): SlotTable {
  const slots = Array.from(schema.attributes())
    .filter(({ attribute, extension }) => extension !== undefined || !own.has(attribute.name))
    .filter(({ attribute }) => attribute.returned !== 'never')
    .flatMap(slotsOfAttribute)
  return {
    written: slots.filter(({ readOnly }) => !readOnly),
    byName: new Map(slots.map((slot) => [slot.name.toLowerCase(), slot])),
  }
}

function slotsOfAttribute(ref: AttributeRef): (Slot & { readonly readOnly: boolean })[] {
  const { attribute } = ref
  const readOnly = attribute.mutability === 'readOnly'
  if (attribute.type !== 'complex') {
    return [{ kind: 'plain', name: internalName(ref), path: ref, leaf: attribute, readOnly }]
  }
  if (!attribute.multiValued) {
    return attribute.subAttributes.map((sub) => {
      const path = { ...ref, sub }
      const fixed = readOnly || sub.mutability === 'readOnly'
      return { kind: 'plain', name: internalName(path), path, leaf: sub, readOnly: fixed }
    })
  }
  const sub = defaultSubAttribute(attribute)
  const elements = { kind: 'elements', name: internalName(ref), path: ref, readOnly } as const
  if (sub === undefined || sub.multiValued || !isText(sub)) return [elements]
  const path = { ...ref, sub }
  return [elements, { kind: 'values', name: internalName(path), path, readOnly }]
}

export const isText = ({ type }: SchemaAttribute): boolean =>
  type === 'string' || type === 'reference' || type === 'binary'
