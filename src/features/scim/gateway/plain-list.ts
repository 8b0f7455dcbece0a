import { Attributes } from '#identity/attributes.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { objectIn, type ScimResource } from '#protocols/scim/schema/resource.ts'
import { type AttributePath, type AttributeRef, internalName } from '#protocols/scim/schema/resource-schema.ts'
import { defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { quoted, scimError } from '#protocols/scim/schema/scim-error.ts'
import { decoder, encodeList } from '#protocols/scim/stored-value.ts'

/** Where the elements of one type are stored. */
export interface ListPlace {
  /** Undefined for elements without a type. */
  readonly type: string | undefined
  /** The internal attribute with the `value` of each element, or the start of the names of the parts of one element. */
  readonly name: string
}

/** What of a list can be stored. */
export interface ListSupport {
  readonly canStore: (name: string) => boolean
  /** Whether the part is dropped if it can't be stored, rather than refused. */
  readonly isIgnored: (path: AttributePath) => boolean
}

/** Parts that follow from the place of an element. */
const derivedParts = new Set(['type', 'primary'])

/**
 * A list of complex values in plain internal attributes. Elements with a `value` have an attribute per type, with a value
 * for each of them; others, such as addresses, have one element per type and an attribute for each part. The first element
 * is the primary one. A place that repeats a name is for writing only: its elements are shown with the type of the first.
 */
export class PlainList {
  /** The internal attributes. */
  readonly names: readonly string[]
  readonly ref: AttributeRef
  readonly #places: readonly ListPlace[]
  readonly #shown: readonly ListPlace[]
  readonly #value: SchemaAttribute | undefined
  readonly #parts: readonly SchemaAttribute[]

  constructor(ref: AttributeRef, places: readonly ListPlace[]) {
    const { attribute } = ref
    this.ref = ref
    this.#places = places
    this.#shown = places.filter(({ name }, i) => places.findIndex((place) => place.name === name) === i)
    this.#value = defaultSubAttribute(attribute)
    this.#parts =
      this.#value === undefined
        ? attribute.subAttributes.filter(({ name, multiValued }) => !multiValued && !derivedParts.has(name))
        : [this.#value]
    this.names = this.#parts.flatMap((part) => this.namesOf(part))
  }

  /** The internal attributes with the values of the part; none for a part that is not stored as such. */
  namesOf(part: SchemaAttribute): readonly string[] {
    return this.#parts.includes(part) ? this.#shown.map((place) => this.#nameAt(place, part)) : []
  }

  isDerived({ name }: SchemaAttribute): boolean {
    return derivedParts.has(name)
  }

  /** What clients know the internal attributes as, for error texts. */
  clientNames(): (readonly [name: string, shown: string])[] {
    return this.#shown.flatMap((place) => {
      const element = `${internalName(this.ref)}${place.type === undefined ? '' : `[type eq "${place.type}"]`}`
      return this.#parts.map(
        (part) => [this.#nameAt(place, part), part === this.#value ? element : `${element}.${part.name}`] as const,
      )
    })
  }

  /** The places of which nothing can be stored. */
  unusable(canStore: ListSupport['canStore']): readonly ListPlace[] {
    return this.#places.filter((place) => !this.#isUsable(place, canStore))
  }

  /** The attribute with the parts and types that can be stored. */
  announced(canStore: ListSupport['canStore']): SchemaAttribute {
    const { attribute } = this.ref
    const canonicalValues = this.#places.flatMap((place) => (this.#isUsable(place, canStore) ? (place.type ?? []) : []))
    const subAttributes = attribute.subAttributes.flatMap((part) => {
      if (part.name === 'type') return canonicalValues.length === 0 ? [] : [{ ...part, canonicalValues }]
      return part.name === 'primary' || this.namesOf(part).some(canStore) ? [part] : []
    })
    return { ...attribute, subAttributes }
  }

  /** Adds the values of one internal attribute to the resource. */
  show(resource: ScimResource, name: string, values: readonly string[]): void {
    const { attribute, extension } = this.ref
    const holder = extension === undefined ? resource : objectIn(resource, extension)
    const before = holder[attribute.name]
    const elements = (Array.isArray(before) ? before : []).filter(isJsonObject).map(({ primary: _, ...rest }) => rest)
    for (const place of this.#shown) {
      for (const part of this.#parts) {
        if (this.#nameAt(place, part).toLowerCase() !== name.toLowerCase()) continue
        const shown = values.flatMap((text) => decoded(part, text) ?? [])
        if (this.#value !== undefined) elements.push(...shown.map((value) => elementAt(place, { value })))
        else if (shown[0] !== undefined) setPart(elements, place, { [part.name]: shown[0] })
      }
    }
    if (elements.length === 0) return
    const ordered = this.#ordered(elements)
    const isMarked = attribute.subAttributes.some((part) => part.name === 'primary')
    holder[attribute.name] = ordered.map((element, i) =>
      i === 0 && isMarked ? { ...element, primary: true } : element,
    )
  }

  /** The stored values that never show, and so stay. Further values of a part would show after a removal, so they go. */
  hidden(values: readonly string[]): readonly string[] {
    const value = this.#value
    return value === undefined ? [] : values.filter((text) => decoded(value, text) === undefined)
  }

  /** Sets the internal attributes of elements that `accept` returned. */
  store(elements: readonly JsonValue[], attributes: Attributes): void {
    for (const element of this.#ordered(elements.filter(isJsonObject))) {
      const place = this.#placeOf(element)
      if (place === undefined) continue
      for (const part of this.#parts) {
        const value = element[part.name]
        if (isAbsent(value)) continue
        const name = this.#nameAt(place, part)
        attributes.set(name, [...new Set([...attributes.values(name), ...encodeList(part, [value])])])
      }
    }
  }

  /** What is stored of the elements, whatever their order and letter case. */
  contents(elements: readonly JsonValue[]): JsonObject {
    const attributes = new Attributes()
    this.store(elements, attributes)
    const lowered = Array.from(attributes, ([name, values]) => [name, values.map((text) => text.toLowerCase()).sort()])
    return Object.fromEntries(lowered)
  }

  /**
   * The elements with what can be stored of them. Throws invalidValue for a type or part that can't be stored, and for
   * another primary element than the first, unless `before` had the mark at the same type. Equal elements become one.
   */
  accept(
    elements: readonly JsonValue[],
    before: readonly JsonValue[],
    { canStore, isIgnored }: ListSupport,
  ): JsonValue[] {
    const list = internalName(this.ref)
    const refuse = (i: number, text: string): never => {
      throw scimError('invalidValue', `${list}[${i}]${text}`)
    }
    const usable = this.#places.filter((place) => this.#isUsable(place, canStore))
    const types = usable.map(({ type }) => (type === undefined ? 'none' : `"${type}"`)).join(', ')
    const accepted: { readonly element: ScimResource; readonly place: ListPlace; readonly i: number }[] = []
    for (const [i, element] of elements.entries()) {
      if (!isJsonObject(element)) continue
      const place = this.#placeOf(element)
      const { type } = element
      if (place === undefined || !usable.includes(place)) {
        if (isIgnored(this.ref)) continue
        const what = isAbsent(type) ? ' without a type' : `: the type ${quoted(String(type))}`
        return refuse(i, `${what} cannot be stored. Types that can be: ${types}.`)
      }
      const kept: ScimResource = {}
      for (const part of this.ref.attribute.subAttributes) {
        const value = element[part.name]
        if (value === undefined || value === null) continue
        const isStored = this.isDerived(part) || (this.#parts.includes(part) && canStore(this.#nameAt(place, part)))
        if (isStored) kept[part.name] = value
        else if (!isIgnored({ ...this.ref, sub: part }) && part.mutability !== 'readOnly')
          refuse(i, `.${part.name} cannot be stored. Leave it out, or list "${list}.${part.name}" in ignoreUnmapped.`)
      }
      if (this.#parts.every((part) => isAbsent(kept[part.name]))) continue
      const others = accepted.filter((other) => other.place.name === place.name)
      const isSame = (other: JsonObject): boolean => this.#parts.every(({ name }) => other[name] === kept[name])
      const same = others.find(({ element: other }) => isSame(other))
      if (same !== undefined) {
        if (kept['primary'] === true) same.element['primary'] = true
        continue
      }
      if (this.#value === undefined && others.length > 0)
        refuse(i, ` is a second one of type "${type}". Only one can be stored.`)
      accepted.push({ element: kept, place, i })
    }
    const [first] = this.#ordered(accepted.map(({ element }) => element))
    const primary = accepted.find(({ element }) => element['primary'] === true)
    const isKept = primary?.place === primaryIn(before, (element) => this.#placeOf(element))
    if (primary !== undefined && primary.element !== first && !isKept) {
      const of = isAbsent(first?.['type']) ? 'without a type' : `of type "${first?.['type']}"`
      refuse(primary.i, ` cannot be primary, because the first value ${of} is. Mark that one, or none.`)
    }
    return accepted.map(({ element }) => element)
  }

  /**
   * Whether another value was to become the primary one of its type, and did not. A mark that an element of an earlier type
   * took over does not count.
   */
  missesPrimary(before: readonly JsonValue[], wanted: readonly JsonValue[], after: readonly JsonValue[]): boolean {
    const [first] = this.#ordered(wanted.filter(isJsonObject))
    const [was, is, found] = [before, first === undefined ? [] : [first], after].map((list) =>
      primaryIn(list, (element) => element['value']),
    )
    return is !== undefined && is !== was && is !== found
  }

  /** By place, the primary one first. */
  #ordered<T extends JsonObject>(elements: readonly T[]): T[] {
    const rank = (element: T): number => {
      const name = this.#placeOf(element)?.name
      const at = this.#shown.findIndex((place) => place.name === name)
      return at * 2 + (element['primary'] === true ? 0 : 1)
    }
    return elements.toSorted((a, b) => rank(a) - rank(b))
  }

  #placeOf({ type }: JsonObject): ListPlace | undefined {
    const wanted = isAbsent(type) ? undefined : String(type).toLowerCase()
    return this.#places.find((place) => place.type?.toLowerCase() === wanted)
  }

  #isUsable(place: ListPlace, canStore: ListSupport['canStore']): boolean {
    return this.#parts.some((part) => canStore(this.#nameAt(place, part)))
  }

  #nameAt({ name }: ListPlace, part: SchemaAttribute): string {
    return part === this.#value ? name : `${name}.${part.name}`
  }
}

const elementAt = ({ type }: ListPlace, parts: JsonObject): JsonObject => ({
  ...parts,
  ...(type === undefined ? {} : { type }),
})

function primaryIn<T>(elements: readonly JsonValue[], of: (element: JsonObject) => T): T | undefined {
  const found = elements.filter(isJsonObject).find((element) => element['primary'] === true)
  return found && of(found)
}

const isAbsent = (value: JsonValue | undefined): value is null | undefined | '' =>
  value === undefined || value === null || value === ''

/** Undefined for an empty text, and for one that does not fit the part. */
const decoded = (part: SchemaAttribute, text: string): JsonValue | undefined =>
  text === '' ? undefined : decoder(part)(text)

function setPart(elements: JsonObject[], place: ListPlace, part: JsonObject): void {
  const at = elements.findIndex((element) => element['type'] === place.type)
  if (at < 0) elements.push(elementAt(place, part))
  else elements[at] = { ...part, ...elements[at] }
}
