import { Attributes } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { type ReadOptions, readValue } from '#protocols/scim/read-resource.ts'
import { readAttribute, type ScimResource, sameValue, writeAttribute } from '#protocols/scim/resource.ts'
import type { AttributePath, AttributeRef, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { SchemaAttribute } from '#protocols/scim/schema.ts'
import { decoder, encodeList } from '#protocols/scim/stored-value.ts'
import { type Slot, type SlotTable, slotsOf } from './resource-slots.ts'

/** One attribute, or a part of one, that is to have another value; undefined takes it away. */
export interface Edit {
  readonly path: AttributePath
  readonly value: JsonValue | undefined
  /** It has no value now. */
  readonly isNew: boolean
}

export interface EditOptions {
  /** The attributes that may be touched. */
  readonly attributes: readonly string[]
  readonly addOnly: boolean
}

const serverValues: ReadOptions = { readOnly: 'keep', maxValues: 10_000 }

/** A schema's resources as internal attributes, by the names of the SCIM gateway's built-in mapping, and back. */
export class ResourceMapping {
  readonly slots: SlotTable
  readonly #schema: ResourceSchema
  /** Names in lower case that mean the resource's own name and are not written as attributes. */
  readonly #names: ReadonlySet<string>

  constructor(schema: ResourceSchema, own: ReadonlySet<string>, names: readonly string[]) {
    this.#schema = schema
    this.slots = slotsOf(schema, own)
    this.#names = new Set(names)
  }

  /** A server's resource with names as the schema spells them. What does not fit its type is left out and told. */
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
      else if (resolved?.kind === 'schema' && resolved.extension !== undefined && isJsonObject(value)) {
        for (const [inner, part] of Object.entries(value)) {
          const path = this.#schema.resolveAttribute(`${resolved.extension}:${inner}`, true)
          if (path !== undefined && path.sub === undefined) take(path, part)
        }
      }
    }
    return resource
  }

  /** What a normalized resource holds. */
  attributes(resource: JsonObject): Attributes {
    const attributes = new Attributes()
    for (const slot of this.slots.byName.values()) {
      const values = textsOf(slot, readPath(resource, slot.path))
      if (values.length > 0) attributes.set(slot.name, values)
    }
    return attributes
  }

  /**
   * What has to be written so that the listed attributes have the wanted values; with addOnly, so that they have them as
   * well. Order and repetition of values do not count. Attributes that only the server sets are passed over. Throws
   * BAD_REQUEST, with the attribute's name, for a value that the server cannot hold.
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
      // A list that is given whole says all that there is to say.
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
    return [{ path: target, value: after.length === 0 ? undefined : after, isNew }]
  }

  #element(slot: Slot, held: readonly JsonValue[], text: string): JsonValue {
    if (slot.kind === 'plain') return this.#value(slot.name, slot.leaf, text)
    if (slot.kind === 'elements') return this.#value(slot.name, slot.path.attribute, text)
    const { sub } = slot.path
    if (text === '') throw unfit(slot.name, 'an empty text is not a value')
    // What else is known of a value stays.
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

/** Puts the edits into a resource of which nothing is shared. */
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
    ...(cause === undefined ? {} : { cause }),
    publicText: `"${attribute.slice(0, 100)}" cannot be written to the server behind: ${reason}.`,
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

/** The list is given by its values alone, which another slot writes. */
function hasValues(slot: Slot, listed: ReadonlySet<string>, wanted: Attributes): boolean {
  const name = `${slot.name}.value`
  return listed.has(name.toLowerCase()) && wanted.has(name)
}

/** SCIM does not count an element without content as there. */
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
