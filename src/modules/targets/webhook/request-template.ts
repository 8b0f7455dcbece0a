import { parseParts, placesOf, type TemplatePart } from './place.ts'
import { refusedValue } from './refused-value.ts'

/** The one value of a place; undefined when it has none. */
export type SingleValues = (name: string) => string | undefined

/** A request line such as `GET /users/{id}?team={group}`, parsed before any value is seen. */
export interface RequestTemplate {
  readonly method: string
  /** Names of the places, each once. */
  readonly places: readonly string[]
  /**
   * Path and query below the API's address. A value stays within its path segment or query value; a query pair whose
   * place has no value is left out. Throws BAD_REQUEST, by name, for a value that cannot stand there.
   */
  render(values: SingleValues): string
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
/** What servers commonly take. */
const maxLength = 8000
const lineForm = /^([A-Za-z]+) +(\/[^\s?#]*)(?:\?([^\s#]*))?$/
const literalForm = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*$/

/** Throws an Error that says what is wrong. */
export function parseRequestTemplate(text: string): RequestTemplate {
  const [, verb = '', path = '', query] = lineForm.exec(text.trim()) ?? []
  if (verb === '') throw new Error('must be a method and a path, such as GET /users/{id}')
  const method = verb.toUpperCase()
  if (!methods.includes(method)) throw new Error(`"${verb}" is none of the methods ${methods.join(', ')}`)
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
      if (rendered.length > maxLength) throw refusedValue(places.join(', '), 'is too long for an address')
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
      if (!literalForm.test(part)) throw new Error(`"${part}" cannot stand in ${where}; percent-encode it`)
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
    throw new Error(`"${name}" is no name of a query value`)
  }
  return { name, value: readPlain(cut < 0 ? '' : text.slice(cut + 1), 'a query') }
}

/** A whole segment of nothing or dots would be another path. */
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
  if (!value.isWellFormed()) throw refusedValue(name, 'is no valid Unicode text')
  return encodeURIComponent(value).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}
