import { readJsonTemplate } from '#identity/mapping/json-template-syntax.ts'
import { isForbiddenKey, isJsonObject, type JsonValue } from '#kernel/json.ts'
import { type Place, parseParts, placesOf, type TemplatePart } from './place.ts'
import { refusedValue } from './refused-value.ts'

export interface BodyValues {
  values(name: string): readonly string[]
  /** Where given, only what has to do with these names is sent, and what has no value is sent as null. */
  readonly changed?: (name: string) => boolean
}

/** JSON with places in its strings, parsed before any value is seen: no value can change its structure. */
export interface BodyTemplate {
  readonly places: readonly Place[]
  /** Throws BAD_REQUEST, by name, for a value that its place cannot take. */
  render(values: BodyValues): JsonValue
}

type Node =
  | { readonly kind: 'constant'; readonly value: JsonValue }
  | { readonly kind: 'one'; readonly place: Place }
  | { readonly kind: 'list'; readonly place: Place }
  | { readonly kind: 'text'; readonly parts: readonly TemplatePart[] }
  | { readonly kind: 'object'; readonly members: readonly (readonly [string, Node])[] }
  | { readonly kind: 'array'; readonly elements: readonly Element[] }

interface Element {
  readonly node: Node
  /** The element stands there once for each value of this name. */
  readonly each: string | undefined
}

const maxLength = 64 * 1024
const maxDepth = 32
const maxRendered = 4 * 1024 * 1024

/** Throws an Error that says what is wrong and where. */
export function parseBodyTemplate(text: string): BodyTemplate {
  if (text.length > maxLength) throw new Error(`longer than ${maxLength} characters`)
  const json = parseJson(text)
  const root = read(json, 1, false)
  return {
    places: placesIn(root),
    render: (values) => {
      const body = render(root, values, true) ?? null
      if (JSON.stringify(body).length > maxRendered) throw refusedValue('the user', 'is too large for one request')
      return body
    },
  }
}

/** Read twice: the reader tells where it fails, and takes a little more than JSON. */
function parseJson(text: string): JsonValue {
  try {
    readJsonTemplate(text)
  } catch (error) {
    const [, reason = String(error), character] =
      /^JSON template: (.*) at character (\d+)$/s.exec(error instanceof Error ? error.message : '') ?? []
    const before = text.slice(0, Math.max(0, Number(character ?? 1) - 1)).split('\n')
    throw new Error(`not JSON: ${reason} at line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`)
  }
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    throw new Error('not JSON: a place stands in quotes, such as "{userID}"')
  }
}

function read(json: JsonValue, depth: number, inArray: boolean): Node {
  if (depth > maxDepth) throw new Error(`nested deeper than ${maxDepth}`)
  if (typeof json === 'string') return readText(json, inArray)
  if (Array.isArray(json)) {
    const elements = json.map((item: JsonValue) => readElement(item, depth + 1))
    return elements.every(({ node }) => node.kind === 'constant')
      ? { kind: 'constant', value: json }
      : { kind: 'array', elements }
  }
  if (!isJsonObject(json)) return { kind: 'constant', value: json }
  const members = Object.entries(json).map(([name, value]) => {
    if (isForbiddenKey(name)) throw new Error(`the name "${name}" is not allowed`)
    return [name, read(value, depth + 1, inArray)] as const
  })
  return members.every(([, node]) => node.kind === 'constant')
    ? { kind: 'constant', value: json }
    : { kind: 'object', members }
}

function readElement(json: JsonValue, depth: number): Element {
  const node = read(json, depth, true)
  const [each, other] = new Set(repeatedIn(node))
  if (other !== undefined) throw new Error(`one element cannot repeat for both {${each}*} and {${other}*}`)
  return { node, each }
}

function readText(text: string, inArray: boolean): Node {
  const parts = parseParts(text)
  const places = placesOf(parts)
  const [place] = places
  if (place === undefined) return { kind: 'constant', value: parts.join('') }
  if (parts.length === 1) return { kind: place.all && !inArray ? 'list' : 'one', place }
  const odd = places.find(({ all, as }) => as !== 'text' || (all && !inArray))
  if (odd !== undefined) throw new Error(`{${odd.name}} with "*" or a type must be the whole of its text`)
  return { kind: 'text', parts }
}

/** Names that the element at hand repeats for; an array within it has repeated its own. */
function repeatedIn(node: Node): string[] {
  if (node.kind === 'one') return node.place.all ? [node.place.name] : []
  if (node.kind === 'text') return placesOf(node.parts).flatMap(({ all, name }) => (all ? [name] : []))
  return node.kind === 'object' ? node.members.flatMap(([, member]) => repeatedIn(member)) : []
}

function placesIn(node: Node): Place[] {
  switch (node.kind) {
    case 'constant':
      return []
    case 'one':
    case 'list':
      return [node.place]
    case 'text':
      return placesOf(node.parts)
    case 'object':
      return node.members.flatMap(([, member]) => placesIn(member))
    case 'array':
      return node.elements.flatMap((element) => placesIn(element.node))
  }
}

/** Undefined is left out. */
function render(node: Node, given: BodyValues, isRoot: boolean): JsonValue | undefined {
  const { changed } = given
  if (node.kind === 'constant') return node.value
  if (changed !== undefined && !isRoot && !placesIn(node).some(({ name }) => changed(name))) return undefined
  switch (node.kind) {
    case 'one': {
      const value = onlyValue(node.place.name, given)
      return value === undefined ? absent(given) : convert(value, node.place)
    }
    case 'list':
      return given.values(node.place.name).map((value) => convert(value, node.place))
    case 'text':
      return renderText(node.parts, given)
    case 'object':
      return renderObject(node.members, given, isRoot)
    case 'array':
      return renderArray(node.elements, given, isRoot)
  }
}

const absent = ({ changed }: BodyValues): null | undefined => (changed === undefined ? undefined : null)

function renderText(parts: readonly TemplatePart[], given: BodyValues): JsonValue | undefined {
  const texts = parts.map((part) => (typeof part === 'string' ? part : onlyValue(part.name, given)))
  const hasValue = texts.some((text, i) => typeof parts[i] !== 'string' && text !== undefined)
  return hasValue ? texts.map((text) => text ?? '').join('') : absent(given)
}

function renderObject(members: readonly (readonly [string, Node])[], given: BodyValues, isRoot: boolean) {
  const object: Record<string, JsonValue> = {}
  let filled = isRoot
  for (const [name, node] of members) {
    const value = render(node, given, false)
    if (value === undefined) continue
    object[name] = value
    filled ||= node.kind !== 'constant'
  }
  return filled ? object : undefined
}

/** A list within the body is sent as a whole; a body that is a list is a list of changes, each for itself. */
function renderArray(elements: readonly Element[], given: BodyValues, isRoot: boolean): JsonValue[] {
  const within: BodyValues = isRoot ? given : { values: (name) => given.values(name) }
  return elements.flatMap(({ node, each }) => {
    const values = each === undefined ? [undefined] : given.values(each)
    return values.flatMap((value) => {
      const bound =
        value === undefined
          ? within
          : { ...within, values: (name: string) => (name === each ? [value] : within.values(name)) }
      const rendered = render(node, bound, false)
      return rendered === undefined ? [] : [rendered]
    })
  })
}

function onlyValue(name: string, given: BodyValues): string | undefined {
  const values = given.values(name)
  if (values.length > 1) throw refusedValue(name, `has ${values.length} values, and one can be stored`)
  return values[0]
}

const numberForm = /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?$/

function convert(value: string, { name, as }: Place): JsonValue {
  if (as === 'text') return value
  if (as === 'number') {
    if (!numberForm.test(value)) throw refusedValue(name, 'is no number')
    return Number(value)
  }
  const word = value.toLowerCase()
  if (word !== 'true' && word !== 'false') throw refusedValue(name, 'is neither true nor false')
  return word === 'true'
}
