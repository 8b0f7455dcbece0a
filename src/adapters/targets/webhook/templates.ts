import { readJsonTemplate } from '#identity/mapping/template.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isForbiddenKey, isJsonObject, type JsonValue } from '#kernel/json.ts'

/** A placeholder in a template: `{name}`, `{name*}` for all values, `{name:boolean}` and `{name:number}`. */
interface Place {
  readonly name: string
  /** Every value, instead of a single one. */
  readonly all: boolean
  readonly as: 'text' | 'boolean' | 'number'
}

type TemplatePart = string | Place

const token = /\{\{|\}\}|\{[^{}]*\}|[{}]/g
const placeForm = /^\{([A-Za-z_][\w.:-]{0,127}?)(\*)?(?::(boolean|number))?\}$/

/** Texts and placeholders in order; `{{` and `}}` are braces. Throws an Error for any other brace. */
function parseParts(text: string): TemplatePart[] {
  const parts: TemplatePart[] = []
  let literal = ''
  let at = 0
  const flush = (): void => {
    if (literal !== '') parts.push(literal)
    literal = ''
  }
  for (const { 0: found, index } of text.matchAll(token)) {
    literal += text.slice(at, index)
    at = index + found.length
    if (found === '{{' || found === '}}') {
      literal += found.charAt(0)
      continue
    }
    const [, name, all, as = 'text'] = placeForm.exec(found) ?? []
    if (name === undefined) {
      const shown = found.length > 1 ? found : text.slice(index, index + 20)
      throw new Error(`"${shown}" is not a place such as {userID}; write a brace twice`)
    }
    flush()
    parts.push({ name, all: all !== undefined, as: as === 'boolean' || as === 'number' ? as : 'text' })
  }
  literal += text.slice(at)
  flush()
  return parts
}

const placesOf = (parts: readonly TemplatePart[]): Place[] =>
  parts.filter((part): part is Place => typeof part !== 'string')

/** Names the attribute, not the value, which may be a secret. */
export const refusedValue = (name: string, reason: string): GatewayError =>
  new GatewayError('BAD_REQUEST', `"${name}" ${reason}`, {
    attribute: name,
    publicText: (shown = name) => `The value of ${shown} cannot be stored: it ${reason}.`,
    keyword: 'invalidValue',
  })

function tooLarge(): GatewayError {
  const publicText = 'The value of the user cannot be stored: it is too large for one request.'
  return new GatewayError('BAD_REQUEST', publicText, { publicText, keyword: 'invalidValue' })
}

/** The single value of a placeholder; undefined if it has none. */
export type SingleValues = (name: string) => string | undefined

/** A request line such as `GET /users/{id}?team={group}`, parsed before any value is known. */
export interface RequestTemplate {
  readonly method: string
  /** Names of the placeholders, each once. */
  readonly places: readonly string[]
  /**
   * Path and query below the API's URL. A value stays within its path segment or query value; a query pair without a
   * value is omitted. Throws BAD_REQUEST, by name, for a value that does not fit.
   */
  render(values: SingleValues): string
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
/** The longest URL that servers commonly accept. */
const maxAddress = 8000
const requestForm = /^([A-Za-z]+) +(\/[^\s?#]*)(?:\?([^\s#]*))?$/
const literalForm = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*$/

/** Throws an Error that describes the problem. */
export function parseRequestTemplate(text: string): RequestTemplate {
  const [, verb = '', path = '', query] = requestForm.exec(text.trim()) ?? []
  if (verb === '') throw new Error('must be a method and a path, such as GET /users/{id}')
  const method = verb.toUpperCase()
  if (!methods.includes(method)) throw new Error(`"${verb}" is not one of the methods ${methods.join(', ')}`)
  const segments = path.slice(1).split('/').map(readSegment)
  const pairs = query === undefined || query === '' ? [] : query.split('&').map(readPair)
  const places = [...segments, ...pairs.map(({ value }) => value)].flatMap(placesOf).map(({ name }) => name)
  return {
    method,
    places: [...new Set(places)],
    render: (values) => {
      const route = segments.map((segment) => renderSegment(segment, values)).join('/')
      const search = pairs.flatMap((pair) => renderPair(pair, values)).join('&')
      const rendered = `/${route}${search === '' ? '' : `?${search}`}`
      if (rendered.length > maxAddress) throw refusedValue(places.join(', '), 'is too long for an address')
      return rendered
    },
  }
}

interface Pair {
  readonly name: string
  readonly value: readonly TemplatePart[]
}

function readPlain(text: string, where: string): TemplatePart[] {
  const parts = parseParts(text)
  for (const part of parts) {
    if (typeof part === 'string') {
      if (!literalForm.test(part)) throw new Error(`"${part}" is not allowed in ${where}; percent-encode it`)
    } else if (part.all || part.as !== 'text') {
      throw new Error(`{${part.name}} in ${where} has one value, so neither "*" nor a type`)
    }
  }
  return parts
}

function readSegment(text: string): TemplatePart[] {
  if (/^(?:\.|%2e){1,2}$/i.test(text)) throw new Error('a path must not hold "." or ".." segments')
  return readPlain(text, 'a path')
}

function readPair(text: string): Pair {
  const cut = text.indexOf('=')
  const name = cut < 0 ? text : text.slice(0, cut)
  if (name === '' || !/^(?:[A-Za-z0-9\-._~!$'()*+,;:@/[\]]|%[0-9A-Fa-f]{2})+$/.test(name)) {
    throw new Error(`"${name}" is not a valid name of a query value`)
  }
  return { name, value: readPlain(cut < 0 ? '' : text.slice(cut + 1), 'a query') }
}

/** An empty segment, or one of dots, would address another path. */
function renderSegment(parts: readonly TemplatePart[], values: SingleValues): string {
  const places = placesOf(parts)
  let plain = ''
  let encoded = ''
  for (const part of parts) {
    if (typeof part === 'string') {
      plain += part
      encoded += part
      continue
    }
    const value = values(part.name)
    if (value === undefined || value === '') throw refusedValue(part.name, 'is empty, and a path needs it')
    plain += value
    encoded += encode(value, part.name)
  }
  if (places.length > 0 && (plain === '.' || plain === '..')) {
    throw refusedValue(places.map(({ name }) => name).join(', '), 'is a path of its own')
  }
  return encoded
}

function renderPair({ name, value }: Pair, values: SingleValues): string[] {
  let rendered = ''
  for (const part of value) {
    if (typeof part === 'string') {
      rendered += part
      continue
    }
    const given = values(part.name)
    if (given === undefined) return []
    rendered += encode(given, part.name)
  }
  return [`${name}=${rendered}`]
}

function encode(value: string, name: string): string {
  if (!value.isWellFormed()) throw refusedValue(name, 'is not valid Unicode text')
  return encodeURIComponent(value).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** A header line such as `If-Match: "{version}"`. */
export interface HeaderTemplate {
  readonly name: string
  readonly places: readonly string[]
  /** Undefined, so that no header is sent, without a value. Throws BAD_REQUEST, by name, for an invalid value. */
  render(values: SingleValues): string | undefined
}

const headerForm = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*)$/s
const valueForm = /^[\t\x20-\x7e]*$/
/** The gateway sets these itself. */
const ownNames = new Set([
  'host',
  'content-length',
  'content-type',
  'transfer-encoding',
  'connection',
  'upgrade',
  'expect',
])

export const isHeaderName = (text: string): boolean => headerForm.test(`${text}:`) && !ownNames.has(text.toLowerCase())

/** Throws an Error that describes the problem. */
export function parseHeaderTemplate(line: string): HeaderTemplate {
  const [, name = '', value = ''] = headerForm.exec(line) ?? []
  if (name === '') throw new Error('must be a header such as "X-Tenant: acme"')
  if (ownNames.has(name.toLowerCase())) throw new Error(`the header "${name}" is made by the gateway`)
  const parts = parseParts(value.trim())
  const odd = placesOf(parts).find(({ all, as }) => all || as !== 'text')
  if (odd !== undefined) throw new Error(`{${odd.name}} in a header has one value, so neither "*" nor a type`)
  if (parts.some((part) => typeof part === 'string' && !valueForm.test(part))) {
    throw new Error('a header holds printable ASCII characters only')
  }
  return {
    name,
    places: placesOf(parts).map((place) => place.name),
    render: (values) => {
      let rendered = ''
      for (const part of parts) {
        const text = typeof part === 'string' ? part : values(part.name)
        if (text === undefined) return undefined
        if (typeof part !== 'string' && !valueForm.test(text))
          throw refusedValue(part.name, 'is not allowed in a header')
        rendered += text
      }
      return rendered
    },
  }
}

export interface BodyValues {
  values(name: string): readonly string[]
  /** If given, the body has only the parts with these names, and null for a missing value. */
  readonly changed?: (name: string) => boolean
}

/** JSON with placeholders in its strings, parsed before any value is known: no value can change its structure. */
export interface BodyTemplate {
  readonly places: readonly Place[]
  /** Throws BAD_REQUEST, by name, for a value that does not fit its placeholder. */
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
  /** The element repeats for each value of this name. */
  readonly each: string | undefined
}

const maxTemplate = 64 * 1024
const maxDepth = 32
const maxRendered = 4 * 1024 * 1024

/** Throws an Error that describes the problem and its position. */
export function parseBodyTemplate(text: string): BodyTemplate {
  if (text.length > maxTemplate) throw new Error(`longer than ${maxTemplate} characters`)
  const json = parseJson(text)
  const root = read(json, 1, false)
  return {
    places: placesIn(root),
    render: (values) => {
      const body = render(root, values, true) ?? null
      if (JSON.stringify(body).length > maxRendered) throw tooLarge()
      return body
    },
  }
}

/** Parsed twice: the template reader reports positions, but accepts more than JSON. */
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
    throw new Error('not JSON: put places in quotes, such as "{userID}"')
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

/** The names that this element repeats for. An array inside it repeats on its own. */
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

/** Undefined is omitted. */
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

/** A list inside the body is sent whole. A body that is a list is a list of changes, each rendered alone. */
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
    if (!numberForm.test(value)) throw refusedValue(name, 'is not a number')
    return Number(value)
  }
  const word = value.toLowerCase()
  if (word !== 'true' && word !== 'false') throw refusedValue(name, 'is neither true nor false')
  return word === 'true'
}
