import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'

/** The limits of a JSON text. They also bound the code that reads the value member by member or recursively. */
export interface JsonBounds {
  /** Levels of objects and lists. */
  readonly depth: number
  /** Members of one object. */
  readonly members: number
  /** Elements of one list. */
  readonly elements: number
  /** Members and elements in total. */
  readonly values: number
}

const decoder = new TextDecoder('utf-8', { fatal: true })
const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openList = 0x5b
const closeList = 0x5d
const openObject = 0x7b
const closeObject = 0x7d

/**
 * The value of a JSON text in UTF-8. Throws INVALID_JSON if it isn't JSON, or if it exceeds a limit, which the
 * public text names. Checks the limits in one pass over the bytes, before it builds anything.
 */
export function parseBoundedJson(
  bytes: Buffer,
  bounds: JsonBounds,
): { readonly value: JsonValue; readonly text: string } {
  const exceeded = exceededBound(bytes, bounds)
  if (exceeded !== undefined) {
    const publicText = `The request body ${exceeded}.`
    throw new GatewayError('INVALID_JSON', `the body ${exceeded}`, { publicText })
  }
  const text = decoded(bytes)
  try {
    return { value: JSON.parse(text) as JsonValue, text }
  } catch {
    // The parser's own message quotes the text, which may be a password.
    const problem = jsonProblem(text)
    const publicText = `The request body is not valid JSON: ${problem}.`
    throw new GatewayError('INVALID_JSON', `the body does not parse: ${problem}`, { publicText })
  }
}

function decoded(bytes: Buffer): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    const publicText = 'The request body is not valid JSON: it is not UTF-8.'
    throw new GatewayError('INVALID_JSON', 'the body is not UTF-8', { cause, publicText })
  }
}

/** To find the place takes longer than to parse. */
const maxLocatedLength = 1024 * 1024

/** Where a text stops being JSON, without quoting it. */
function jsonProblem(text: string): string {
  if (!/\S/.test(text)) return 'it is empty'
  if (text.length > maxLocatedLength) return 'a character is unexpected, or it ends too early'
  const at = invalidAt(text)
  let [line, start] = [1, 0]
  for (let end = text.indexOf('\n'); end >= 0 && end < at; end = text.indexOf('\n', start)) {
    line++
    start = end + 1
  }
  const place = `line ${line}, column ${at - start + 1}`
  return at >= text.length ? `it ends too early, at ${place}` : `unexpected character at ${place}`
}

const literal = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const blanks = /[ \t\n\r]*/y
const escaped = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: a string can't have them
const plain = /[^"\\\x00-\x1f]*/y

/** The offset of the first character that can't be part of a JSON text; its length if the text ends too early. */
function invalidAt(text: string): number {
  const open: string[] = []
  let want: 'value' | 'value or ]' | 'name' | 'name or }' | ':' | 'next' = 'value'
  for (let at = 0; ; ) {
    blanks.lastIndex = at
    blanks.test(text)
    at = blanks.lastIndex
    const char = text[at]
    if (char === undefined) return at
    if (want === ':') {
      if (char !== ':') return at
      want = 'value'
      at++
    } else if (want === 'next' || char === want.at(-1)) {
      const top = open.at(-1)
      if (char === ',' && top !== undefined) want = top === '{' ? 'name' : 'value'
      else if (char !== (top === '{' ? '}' : ']') || open.pop() === undefined) return at
      else want = 'next'
      at++
    } else if (char === '"') {
      const end = textEnd(text, at)
      if (!end.closed) return end.at
      at = end.at
      want = want.startsWith('name') ? ':' : 'next'
    } else if (want.startsWith('name')) {
      return at
    } else if (char === '{' || char === '[') {
      open.push(char)
      want = char === '{' ? 'name or }' : 'value or ]'
      at++
    } else {
      literal.lastIndex = at
      const length = literal.exec(text)?.[0].length ?? 0
      if (length === 0) return at
      at += length
      want = 'next'
    }
  }
}

/** The offset after the closing quote, or of a character that can't be in a string. */
function textEnd(text: string, start: number): { readonly at: number; readonly closed: boolean } {
  for (let at = start + 1; ; ) {
    plain.lastIndex = at
    plain.test(text)
    at = plain.lastIndex
    if (at >= text.length) return { at, closed: false }
    if (text[at] === '"') return { at: at + 1, closed: true }
    escaped.lastIndex = at
    if (!escaped.test(text)) return { at, closed: false }
    at = escaped.lastIndex
  }
}

/** Undefined if the text is within its limits, or is not JSON in a way that the parser finds sooner. */
function exceededBound(bytes: Buffer, { depth: deepest, members, elements, values }: JsonBounds): string | undefined {
  /** For each level: the number of values so far, one more than commas, and whether it is a list. */
  const counts = new Uint32Array(deepest + 1)
  const isList = new Uint8Array(deepest + 1)
  let depth = 0
  let total = 0
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case quote:
        at = endOfText(bytes, at)
        break
      case comma:
        counts[depth] = (counts[depth] ?? 0) + 1
        if (depth > 0 && (counts[depth] ?? 0) > (isList[depth] === 1 ? elements : members)) {
          return isList[depth] === 1
            ? `has a list of more than ${shown(elements)} elements`
            : `has an object of more than ${shown(members)} members`
        }
        if (++total > values) return tooMany(values)
        break
      case openList:
      case openObject:
        if (++depth > deepest) return `is nested deeper than ${deepest} levels`
        if (++total > values) return tooMany(values)
        isList[depth] = bytes[at] === openList ? 1 : 0
        counts[depth] = 1
        break
      case closeList:
      case closeObject:
        if (depth > 0) depth--
        break
    }
  }
  return undefined
}

/** The offset at which the string that begins at a quote ends. */
function endOfText(bytes: Buffer, start: number): number {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at
}

const tooMany = (values: number): string => `has more than ${shown(values)} values`
const shown = (count: number): string => count.toLocaleString('en-US')

/**
 * The name of a member that appears twice in one object; undefined if there is none. JSON.parse silently takes the
 * last of them, and other readers the first. The text must be JSON.
 */
export function duplicateMember(text: string): string | undefined {
  const open: (Set<string> | undefined)[] = []
  let [start, end] = [0, 0]
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        start = at
        at++
        while (text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1
        end = at
        break
      case openObject:
        open.push(new Set())
        break
      case openList:
        open.push(undefined)
        break
      case closeObject:
      case closeList:
        open.pop()
        break
      case colon: {
        const names = open.at(-1)
        const raw = text.slice(start + 1, end)
        const name: string = raw.includes('\\') ? JSON.parse(text.slice(start, end + 1)) : raw
        if (names?.has(name)) return name
        names?.add(name)
        break
      }
    }
  }
  return undefined
}

/**
 * Whether an object in the value has a member `__proto__`, which schemas silently ignore. Searches without recursion:
 * the depth is bounded, but the caller's stack is unknown.
 */
export function reachesIntoPrototypes(value: unknown): boolean {
  const pending = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    if (typeof next !== 'object' || next === null) continue
    if (Object.hasOwn(next, '__proto__')) return true
    for (const inner of Object.values(next)) pending.push(inner)
  }
  return false
}
