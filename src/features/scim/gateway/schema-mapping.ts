import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { type ReadOptions, readSingle, readValue } from '#protocols/scim/read-resource.ts'
import { objectIn, readPath, type ScimResource, sameValue } from '#protocols/scim/schema/resource.ts'
import {
  type AttributePath,
  type AttributeRef,
  internalName,
  pathKey,
  type ResourceSchema,
} from '#protocols/scim/schema/resource-schema.ts'
import { defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { decoder, emptyMark, encodeList } from '#protocols/scim/stored-value.ts'
import type { PlainList } from './plain-list.ts'

/** The limit is higher than for clients, so that values stored before a limit was lowered are still shown. */
const storedValues: ReadOptions = { readOnly: 'keep', maxValues: 10_000 }

/** Where the values of a SCIM attribute are stored. */
export interface AttributeLocation {
  /** The internal attributes that together store them; none if there is never a value. */
  readonly names: readonly string[]
  /** The values are inside those of the names, so a store can only report whether there may be any. */
  readonly inside?: boolean
  /** Inside: each value is an element as JSON text, in which the attribute has this name. */
  readonly jsonName?: string
  /** Clients may see fewer values than are stored, so the store only finds candidates. */
  readonly partly?: boolean
  /** Clients see the first of the stored values, so the store only finds candidates for a comparison. */
  readonly firstOnly?: boolean
  /** Matches values that SCIM does not count as present; undefined if there are none. */
  readonly isEmpty?: (attribute: string) => Filter
  /** All values may be empty texts, which SCIM does not count as present. */
  readonly orEmpty?: boolean
  /** The first value is that of the primary element. */
  readonly primaryFirst?: boolean
  /** The names have copies of values for searches. Where they are not stored, the values are only here. */
  readonly original?: AttributeLocation
  /** The values are times as `timeValue` writes them, which the store can compare and sort. */
  readonly isTime?: boolean
}

/** One internal attribute of the mapping. */
interface Slot {
  readonly name: string
  /** The SCIM attribute, or the part of a single complex one, that it stores. */
  readonly path: AttributePath
  /** Whether clients can set it; otherwise it is only shown. */
  readonly taken: boolean
  /** For a list of complex values: a second attribute with the values of their default sub-attribute, for searches. */
  readonly values?: { readonly name: string; readonly sub: SchemaAttribute }
  /** For a list of complex values in plain attributes, which then are those of the slot. */
  readonly list?: PlainList
}

type Report = (error: unknown) => void

interface View {
  readonly show: (resource: ScimResource, values: readonly string[], report: Report) => void
  /** The stored values that are not shown, if others of the attribute are or could be. */
  readonly hidden: (values: readonly string[]) => readonly string[]
}

interface Exclusions {
  /** SCIM attributes that are not mapped here. */
  readonly paths: (path: AttributePath) => boolean
  /** Internal attributes, in lower case, that are produced elsewhere. */
  readonly names: ReadonlySet<string>
}

/** The values of attributes, by name. */
export type StoredValues = Iterable<readonly [name: string, values: readonly string[]]>

/**
 * The built-in mapping of a schema to internal attributes: one for each attribute or part of a single complex one, and for
 * a list of complex values one JSON text per element, or the plain values of a `PlainList`. Clients read back what they
 * wrote. It is compiled once, since showing users is the most frequent work of a gateway.
 */
export class SchemaMapping {
  /** The internal attributes that it produces. */
  readonly produces: readonly string[]
  /** The internal attributes that it shows. */
  readonly reads: readonly string[]
  readonly taken: readonly AttributePath[]
  readonly shown: readonly AttributePath[]
  readonly #schema: ResourceSchema
  readonly #slots: readonly Slot[]
  readonly #names: ReadonlySet<string>
  readonly #views: ReadonlyMap<string, View>
  readonly #locations: ReadonlyMap<string, AttributeLocation>

  constructor(
    schema: ResourceSchema,
    refs: Iterable<AttributeRef>,
    excluded: Exclusions,
    lists: readonly PlainList[] = [],
  ) {
    this.#schema = schema
    const byKey = new Map(lists.map((list) => [pathKey(list.ref), list]))
    this.#slots = Array.from(refs)
      .flatMap((ref) => slotsOf(ref, byKey.get(pathKey(ref))))
      .filter(({ path }) => !excluded.paths(path))
    const made = this.#slots.filter(({ taken }) => taken)
    this.produces = made.flatMap(namesIn).filter((name) => !excluded.names.has(name.toLowerCase()))
    this.reads = this.#slots.flatMap(namesIn)
    this.#names = new Set(this.produces)
    this.taken = made.map(({ path }) => path)
    this.shown = this.#slots.map(({ path }) => path)
    this.#views = new Map(
      this.#slots.flatMap((slot) => {
        const views = slot.list?.names.map((name) => [name, listView(slot.list, name)] as const)
        return (views ?? [[slot.name, this.#view(slot)] as const]).flatMap(([name, view]) =>
          [...new Set([name, name.toLowerCase()])].map((spelling) => [spelling, view] as const),
        )
      }),
    )
    this.#locations = locationsOf(this.#slots)
  }

  get isEmpty(): boolean {
    return this.#slots.length === 0
  }

  /** The list in plain attributes; undefined for any other attribute. */
  listAt(path: AttributePath): PlainList | undefined {
    return this.#slots.find((slot) => slot.list !== undefined && pathKey(slot.path) === pathKey(path))?.list
  }

  /** The internal attributes that store exactly this attribute or part. */
  namesAt(path: AttributePath): readonly string[] {
    return this.listAt(path)?.names ?? [internalName(path)]
  }

  /** Undefined for a path that is not mapped here. */
  locate(path: AttributePath): AttributeLocation | undefined {
    return this.#locations.get(pathKey(path))
  }

  /** Writes the values of the resource to the attributes; other attributes stay as they are. */
  store(resource: JsonObject, attributes: Attributes): void {
    for (const { name, path, taken, values, list: plainList } of this.#slots) {
      if (!taken) continue
      const value = readPath(resource, path)
      if (value === undefined) continue
      const list = Array.isArray(value) ? value : [value as JsonValue]
      if (plainList !== undefined) {
        plainList.store(list, attributes)
        continue
      }
      const leaf = path.sub ?? path.attribute
      if (this.#names.has(name)) {
        attributes.set(name, encodeList(leaf, list))
      }
      if (values !== undefined && this.#names.has(values.name)) attributes.set(values.name, plain(list, values.sub))
    }
  }

  /** Writes the stored values to the resource. A value that does not fit is left out and passed to `report`. */
  show(resource: ScimResource, attributes: StoredValues, report: (attribute: string, error: unknown) => void): void {
    for (const [name, values] of attributes) {
      const view = this.#views.get(name) ?? this.#views.get(name.toLowerCase())
      if (view === undefined) continue
      try {
        view.show(resource, values, (error) => report(name, error))
      } catch (error) {
        report(name, error)
      }
    }
  }

  /** The stored values that `show` leaves out; undefined if this mapping does not produce the attribute. */
  hidden(name: string, values: readonly string[]): readonly string[] | undefined {
    return this.#names.has(name) ? this.#views.get(name)?.hidden(values) : undefined
  }

  #view({ path }: Slot): View {
    const { attribute, sub, extension } = path
    const leaf = sub ?? attribute
    const decode = decoder(leaf)
    const one = (text: string): JsonValue | undefined => decode(text) ?? this.#convert(leaf, text)
    const read = leaf.multiValued
      ? (values: readonly string[], report: Report) => decodeAll(values, decode) ?? fitting(values, one, report)
      : ([text = '']: readonly string[]) => one(text)
    const holder = (resource: ScimResource) => (extension === undefined ? resource : objectIn(resource, extension))
    const fits = (text: string): boolean => {
      try {
        return one(text) !== undefined
      } catch {
        return false
      }
    }
    return {
      show: (resource, values, report) => {
        const value = read(values, report)
        if (value === undefined) return
        const into = holder(resource)
        if (sub === undefined) into[attribute.name] = value
        else objectIn(into, attribute.name)[sub.name] = value
      },
      hidden: (values) => {
        if (leaf.multiValued) return values.filter((text) => !fits(text))
        return values.length > 1 && fits(values[0] ?? '') ? values.slice(1) : []
      },
    }
  }

  /** Reads values from other writers as leniently as values from clients. Throws if that fails. */
  #convert(leaf: SchemaAttribute, text: string): JsonValue | undefined {
    return readSingle(this.#schema, leaf, leaf.type === 'complex' ? jsonOrText(text) : text, storedValues)
  }
}

/**
 * Converts a stored value to the type of its attribute. Elements of a list that do not fit are left out, and the first of
 * them is reported. Throws if a single value does not fit.
 */
export function readStored(
  schema: ResourceSchema,
  leaf: SchemaAttribute,
  raw: JsonValue,
  report: Report,
): JsonValue | undefined {
  if (!leaf.multiValued || !Array.isArray(raw)) return readValue(schema, leaf, raw, storedValues)
  return fitting(raw, (item: JsonValue) => readSingle(schema, leaf, item, storedValues), report)
}

function fitting<T>(
  items: readonly T[],
  read: (item: T) => JsonValue | undefined,
  report: Report,
): JsonValue[] | undefined {
  const values: JsonValue[] = []
  let reported = false
  for (const item of items) {
    try {
      const value = read(item)
      if (value !== undefined) values.push(value)
    } catch (error) {
      if (!reported) report(error)
      reported = true
    }
  }
  return values.length === 0 ? undefined : values
}

const namesIn = ({ name, values, list }: Slot): readonly string[] =>
  list?.names ?? (values === undefined ? [name] : [name, values.name])

const listView = (list: PlainList | undefined, name: string): View => ({
  show: (resource, values) => list?.show(resource, name, values),
  hidden: (values) => list?.hidden(values) ?? [],
})

function slotsOf(ref: AttributeRef, list: PlainList | undefined): Slot[] {
  const { attribute } = ref
  const taken = attribute.mutability !== 'readOnly'
  if (list !== undefined) return [{ name: internalName(ref), path: ref, taken, list }]
  if (attribute.returned === 'never' && !taken) return []
  if (attribute.type !== 'complex') return [{ name: internalName(ref), path: ref, taken }]
  if (!attribute.multiValued) {
    return attribute.subAttributes.map((sub) => {
      const path = { ...ref, sub }
      return { name: internalName(path), path, taken: taken && sub.mutability !== 'readOnly' }
    })
  }
  const sub = defaultSubAttribute(attribute)
  const values = sub === undefined ? {} : { values: { name: internalName({ ...ref, sub }), sub } }
  return [{ name: internalName(ref), path: ref, taken, ...values }]
}

function locationsOf(slots: readonly Slot[]): ReadonlyMap<string, AttributeLocation> {
  const held = new Map<string, AttributeLocation>()
  const parts = new Map<string, { names: string[]; inside: boolean }>()
  for (const { name, path, values, list } of slots) {
    const { attribute, sub, extension } = path
    const whole = extension === undefined ? { attribute } : { attribute, extension }
    if (list !== undefined) {
      held.set(pathKey(path), { names: list.names, orEmpty: true })
      // A store has no values of derived parts, so it can't evaluate conditions on them.
      for (const part of attribute.subAttributes.filter((one) => !list.isDerived(one))) {
        held.set(pathKey({ ...whole, sub: part }), locationIn(list, part))
      }
      continue
    }
    held.set(pathKey(path), locationOf(name, sub ?? attribute))
    if (sub !== undefined) {
      const { names, inside } = parts.get(pathKey(whole)) ?? { names: [], inside: false }
      parts.set(pathKey(whole), { names: [...names, name], inside: inside || sub.multiValued })
      continue
    }
    for (const inner of attribute.subAttributes) {
      const element = { names: [name], inside: true, ...(inJson(inner) ? { jsonName: inner.name } : {}) }
      const copy = { names: [values?.name ?? name], primaryFirst: true, original: element }
      const found = inner === values?.sub ? copy : element
      held.set(pathKey({ ...whole, sub: inner }), found)
    }
  }
  for (const [key, { names, inside }] of parts)
    held.set(key, inside ? { names, inside } : { names, isEmpty: emptyText })
  return held
}

/** Which of several attributes has the primary value depends on the user. */
function locationIn(list: PlainList, part: SchemaAttribute): AttributeLocation {
  const names = list.namesOf(part)
  return { names, ...(isText(part) && names.length > 0 ? { orEmpty: true } : {}), primaryFirst: names.length === 1 }
}

/** A store cannot evaluate whether all values of a list of texts are empty. */
function locationOf(name: string, leaf: SchemaAttribute): AttributeLocation {
  if (leaf.type === 'complex') return { names: [name], isEmpty: emptyList }
  if (!isText(leaf)) return { names: [name] }
  return leaf.multiValued ? { names: [name], orEmpty: true } : { names: [name], isEmpty: emptyText }
}

const emptyText = (attribute: string): Filter => ({ kind: 'equal', attribute, value: '' })

const emptyList = (attribute: string): Filter => ({ kind: 'substring', attribute, initial: emptyMark, any: [] })

/** Whether the JSON text of an element shows the value of the part. */
const inJson = (part: SchemaAttribute): boolean => !part.multiValued && (isText(part) || part.type === 'boolean')

const isText = ({ type }: SchemaAttribute): boolean => type === 'string' || type === 'reference' || type === 'binary'

/** The primary value first, since lists are sorted by it. Empty texts are left out. */
function plain(elements: readonly JsonValue[], sub: SchemaAttribute): string[] {
  const primary: string[] = []
  const others: string[] = []
  for (const element of elements) {
    const value = isJsonObject(element) ? element[sub.name] : undefined
    if (value === undefined || value === '' || !isJsonObject(element)) continue
    ;(element['primary'] === true ? primary : others).push(String(value))
  }
  return [...primary, ...others]
}

/** Undefined if the mapping did not write one of the values. */
function decodeAll(
  values: readonly string[],
  decode: (text: string) => JsonValue | undefined,
): JsonValue[] | undefined {
  const decoded: JsonValue[] = []
  for (const text of values) {
    const value = decode(text)
    if (value === undefined) return undefined
    decoded.push(value)
  }
  return decoded
}

/** The JSON value of a text that starts like one, or the text. */
export function jsonOrText(text: string, start = /^ ?\{/): JsonValue {
  if (!start.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** What brings an account from one resource to another. */
export interface AttributeChange {
  readonly attributes: Attributes
  /** The attributes that lose their values. */
  readonly cleared: readonly string[]
  readonly isChanged: boolean
}

/**
 * `before` and `after` are the internal attributes of what clients see and of what they want. An attribute that is the
 * same in both keeps its stored values. One that changes keeps the stored values that clients cannot see.
 */
export function attributeChange(
  mapping: SchemaMapping,
  names: Iterable<string>,
  stored: Attributes,
  before: Attributes,
  after: Attributes,
): AttributeChange {
  const attributes = new Attributes()
  const cleared: string[] = []
  let isChanged = false
  for (const name of names) {
    const present = stored.values(name)
    const visible = before.values(name)
    const wanted = after.values(name)
    const isSame = sameValue(visible, wanted)
    const hidden = () => mapping.hidden(name, present) ?? hiddenByLines(present, visible)
    const values = isSame && present.length > 0 ? present : withHidden(wanted, hidden())
    attributes.set(name, values)
    if (isSame) continue
    isChanged = true
    if (values.length === 0) cleared.push(name)
  }
  return { attributes, cleared, isChanged }
}

/**
 * Mapping lines may show fewer values than are stored. If they show none, or values that are not stored, the hidden ones
 * cannot be determined, and the wanted values replace all.
 */
function hiddenByLines(stored: readonly string[], visible: readonly string[]): readonly string[] {
  const present = new Set(stored)
  if (visible.length === 0 || !visible.every((value) => present.has(value))) return []
  const shown = new Set(visible)
  return stored.filter((value) => !shown.has(value))
}

/** Directories treat values that differ only in letter case as equal, so a wanted value replaces such a hidden one. */
function withHidden(wanted: readonly string[], hidden: readonly string[]): readonly string[] {
  if (hidden.length === 0) return wanted
  const present = new Set(wanted.map((value) => value.toLowerCase()))
  return [...wanted, ...hidden.filter((value) => !present.has(value.toLowerCase()))]
}
