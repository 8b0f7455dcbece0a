import type { CompareOperator, CompareValue, ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import type { AttributePath, AttributeRef, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import {
  type AttributeType,
  dateTimeMillis,
  defaultSubAttribute,
  type SchemaAttribute,
} from '#protocols/scim/schema/schema.ts'
import { quoted, redacted, type ScimErrorType, scimError } from '#protocols/scim/schema/scim-error.ts'

const maxFilterLength = 4096
export const maxFilterDepth = 50

const operators: ReadonlySet<string> = new Set(['eq', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le'])

const keywords: ReadonlySet<string> = new Set(['and', 'or', 'not'])
const operatorList = 'eq, ne, co, sw, ew, pr, gt, ge, lt or le'
/**
 * A text without quotes. Single quotes are rejected: from an empty result, a client would conclude that the user
 * does not exist.
 */
const bareWord = /^(?!')[\p{L}\p{N}_.:@+'/-]{1,256}$/u
const textTypes: ReadonlySet<AttributeType> = new Set(['string', 'reference', 'dateTime', 'binary'])

/** Turns a name into a path: of the resource, or of one element inside brackets. */
type Scope = (name: string) => AttributePath | undefined

export interface FilterOptions {
  /** Exactly RFC 7644's grammar: texts in quotes, booleans without, extensions' attributes with their URN. */
  readonly strict?: boolean
  /** Allows extensions' attributes without their URN even then. */
  readonly unqualified?: boolean
  /** Other names of attributes, in lower case, unless the schema has an attribute of that name. */
  readonly aliases?: ReadonlyMap<string, string> | undefined
}

/** Throws invalidFilter for anything outside the grammar, unknown attributes, and invalid comparisons. */
export function parseFilter(
  text: string,
  schema: ResourceSchema,
  { strict = false, unqualified = !strict, aliases }: FilterOptions = {},
): ScimFilter {
  if (text.length > maxFilterLength) {
    throw scimError('invalidFilter', `The filter is longer than ${maxFilterLength} characters. Split it.`)
  }
  if (text.trim() === '') {
    throw scimError('invalidFilter', 'The filter is empty. Write a condition, or leave the parameter out.')
  }
  return new FilterParser(tokenize(text, 'invalidFilter'), schema, strict).whole((name) => {
    const meant = aliases?.get(name.toLowerCase())
    const own = schema.resolveAttribute(name, !unqualified)
    return own === undefined && meant !== undefined ? schema.resolveAttribute(meant) : own
  })
}

/** The condition between the brackets of a PATCH path. Throws invalidFilter as well (RFC 7644 table 9). */
export function parseElementFilter(
  tokens: readonly Token[],
  schema: ResourceSchema,
  of: AttributeRef,
  { strict = false }: FilterOptions = {},
): ScimFilter {
  return new FilterParser(tokens, schema, strict).whole(elementScope(schema, of))
}

function elementScope(schema: ResourceSchema, of: AttributeRef): Scope {
  return (name) => {
    const attribute = schema.elementAttribute(of.attribute, name)
    return attribute === undefined ? undefined : { attribute }
  }
}

class FilterParser {
  readonly #tokens: readonly Token[]
  readonly #schema: ResourceSchema
  readonly #strict: boolean
  #at = 0
  #depth = 0

  constructor(tokens: readonly Token[], schema: ResourceSchema, strict: boolean) {
    this.#tokens = tokens
    this.#schema = schema
    this.#strict = strict
  }

  whole(scope: Scope): ScimFilter {
    const filter = this.#or(scope)
    const rest = this.#peek()
    if (rest !== undefined) {
      const shown = rest.kind === 'word' ? quoted(rest.text) : rest.kind === 'string' ? 'a text' : `"${rest.kind}"`
      this.#fail(`The filter continues with ${shown} after a complete condition. Join conditions with "and" or "or".`)
    }
    return filter
  }

  #or(scope: Scope): ScimFilter {
    const filters = [this.#and(scope)]
    while (this.#keyword('or')) filters.push(this.#and(scope))
    const [only] = filters
    return filters.length === 1 && only !== undefined ? only : { kind: 'or', filters }
  }

  #and(scope: Scope): ScimFilter {
    const filters = [this.#term(scope)]
    while (this.#keyword('and')) filters.push(this.#term(scope))
    const [only] = filters
    return filters.length === 1 && only !== undefined ? only : { kind: 'and', filters }
  }

  #term(scope: Scope): ScimFilter {
    const token = this.#next('a condition')
    if (token.kind === '(') return this.#group(')', scope)
    if (token.kind !== 'word') this.#fail('A condition must start with an attribute name, "not" or "(".')
    if (token.text.toLowerCase() === 'not') {
      if (this.#next('"("').kind !== '(') this.#fail('"not" must be followed by "(".')
      return { kind: 'not', filter: this.#group(')', scope) }
    }
    const path = scope(token.text)
    if (path === undefined) {
      this.#fail(`The resource has no attribute ${quoted(token.text)}. Check the name, and the schema in /Schemas.`)
    }
    const hidden = [path.attribute, path.sub].find((part) => part?.returned === 'never')
    if (hidden !== undefined) this.#fail(`${hidden.name} is never shown, so it cannot be used in a filter.`)
    return this.#peek()?.kind === '[' ? this.#element(path) : this.#condition(path)
  }

  #group(end: ')' | ']', scope: Scope): ScimFilter {
    if (++this.#depth > maxFilterDepth)
      this.#fail(`The filter is nested deeper than ${maxFilterDepth} levels. Simplify it.`)
    const filter = this.#or(scope)
    if (this.#next(`"${end}"`).kind !== end) this.#fail(`"${end}" is missing.`)
    this.#depth--
    return filter
  }

  #element(path: AttributePath): ScimFilter {
    const { attribute, extension, sub } = path
    const hasElements = attribute.type === 'complex' || attribute.multiValued
    if (!hasElements || sub !== undefined) this.#fail(`${attribute.name} has no elements, so "[…]" cannot follow it.`)
    const of: AttributeRef = extension === undefined ? { attribute } : { attribute, extension }
    const inner = elementScope(this.#schema, of)
    this.#at++
    const filter = this.#group(']', inner)
    const after = this.#peek()
    if (after?.kind !== 'word' || !after.text.startsWith('.')) return { kind: 'element', of, filter }
    this.#at++
    const name = after.text.slice(1)
    const subPath =
      inner(name) ??
      this.#fail(`${attribute.name} has no sub-attribute ${quoted(name)}. Check the name, and the schema in /Schemas.`)
    return { kind: 'element', of, filter: { kind: 'and', filters: [filter, this.#condition(subPath)] } }
  }

  #condition(path: AttributePath): ScimFilter {
    const token = this.#next('an operator')
    const word = token.kind === 'word' ? token.text.toLowerCase() : ''
    if (word === 'pr') return { kind: 'present', path }
    const leaf = path.sub ?? path.attribute
    if (!operators.has(word)) {
      if (token.kind !== 'word') this.#fail(`The operator after ${leaf.name} is missing. Use ${operatorList}.`)
      this.#fail(`${quoted(token.text)} is not an operator. After ${leaf.name}, use ${operatorList}.`)
    }
    const operator = word as CompareOperator
    const inner = leaf.type === 'complex' ? defaultSubAttribute(leaf) : undefined
    const raw = this.#value(inner ?? leaf)
    const read = readCompareValue(inner ?? leaf, operator, raw, this.#strict)
    if ('problem' in read) this.#fail(read.problem)
    const target = inner === undefined || path.sub !== undefined ? path : { ...path, sub: inner }
    return { kind: 'compare', operator, path: target, value: read.value }
  }

  #value(leaf: SchemaAttribute): CompareValue {
    const token = this.#next('a value')
    if (token.kind === 'string') return token.value
    const text = token.kind === 'word' ? token.text : ''
    // RFC 7644 lists JSON's own words; some clients write them in title case.
    const word = this.#strict ? text : text.toLowerCase()
    if (word === 'null') return null
    // And some leave out the quotes.
    if (!this.#strict && textTypes.has(leaf.type) && bareWord.test(text) && !keywords.has(word)) return text
    if (word === 'true' || word === 'false') return word === 'true'
    if (/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return Number(text)
    if (text.startsWith("'")) this.#fail(`${leaf.name}: the value is in single quotes. Put it in double quotes.`)
    return this.#fail(`${leaf.name}: ${redacted(text)} is not a value. Put texts in double quotes.`)
  }

  #keyword(word: string): boolean {
    const token = this.#peek()
    if (token?.kind !== 'word' || token.text.toLowerCase() !== word) return false
    this.#at++
    return true
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#at]
  }

  #next(wanted: string): Token {
    return this.#tokens[this.#at++] ?? this.#fail(`The filter ends where ${wanted} is expected.`)
  }

  #fail(detail: string): never {
    throw scimError('invalidFilter', detail)
  }
}

type Token =
  | { readonly kind: '(' | ')' | '[' | ']' }
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: 'string'; readonly value: string }

/** Throws if a string is not closed or not JSON. The error gives its position only, since its content may be secret. */
export function tokenize(text: string, errorType: ScimErrorType): Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < text.length) {
    const char = text[at] ?? ''
    if (char === ' ' || char === '\t') {
      at++
    } else if (char === '(' || char === ')' || char === '[' || char === ']') {
      tokens.push({ kind: char })
      at++
    } else if (char === '"') {
      const end = stringEnd(text, at)
      if (end < 0) throw scimError(errorType, `The text that starts at character ${at + 1} has no closing quote.`)
      tokens.push({ kind: 'string', value: readString(text, at, end, errorType) })
      at = end
    } else {
      const start = at
      while (at < text.length && !isDelimiter(text[at] ?? '')) at++
      tokens.push({ kind: 'word', text: text.slice(start, at) })
    }
  }
  return tokens
}

const isDelimiter = (char: string): boolean => ' \t()[]"'.includes(char)

/** The position after the closing quote; -1 without one. */
function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at + 1
  }
  return -1
}

function readString(text: string, start: number, end: number, errorType: ScimErrorType): string {
  try {
    return String(JSON.parse(text.slice(start, end)))
  } catch (cause) {
    throw scimError(
      errorType,
      `The text that starts at character ${start + 1} is not a JSON string. Check its backslashes.`,
      { cause },
    )
  }
}

const ordering: ReadonlySet<CompareOperator> = new Set(['gt', 'ge', 'lt', 'le'])
const textual: ReadonlySet<CompareOperator> = new Set(['co', 'sw', 'ew'])

/** The value in the attribute's type, or why it can't be compared. With `strict`, a value in quotes is a text. */
function readCompareValue(
  attribute: SchemaAttribute,
  operator: CompareOperator,
  value: CompareValue,
  strict = false,
): { readonly value: CompareValue } | { readonly problem: string } {
  const { name, type } = attribute
  if (value === null) {
    return operator === 'eq' || operator === 'ne'
      ? { value }
      : { problem: `${name}: ${operator} cannot compare with null. Use eq or ne.` }
  }
  switch (type) {
    case 'complex':
      return { problem: `${name} is complex. Compare one of its sub-attributes, such as ${firstPart(attribute)}.` }
    case 'boolean': {
      if (operator !== 'eq' && operator !== 'ne')
        return { problem: `${name}: ${operator} does not apply to a boolean. Use eq or ne.` }
      const word = String(value).toLowerCase()
      if ((word !== 'true' && word !== 'false') || (strict && typeof value !== 'boolean'))
        return { problem: `${name} must be compared with true or false${strict ? ', without quotes' : ''}.` }
      return { value: word === 'true' }
    }
    case 'integer':
    case 'decimal':
      if (textual.has(operator)) return { problem: notTextual(name, operator, 'a number') }
      return readNumber(name, value, strict)
    case 'dateTime':
      if (textual.has(operator)) return { problem: notTextual(name, operator, 'a date and time') }
      if (typeof value !== 'string' || Number.isNaN(dateTimeMillis(value)))
        return { problem: `${name} must be compared with a date and time such as "2026-01-31T09:00:00Z".` }
      return { value }
    case 'binary':
      if (ordering.has(operator))
        return { problem: `${name}: ${operator} does not apply to binary values. Use eq, ne, co, sw or ew.` }
      break
  }
  if (typeof value !== 'string') return { problem: `${name} must be compared with a text in double quotes.` }
  // No attribute can have these characters, and not every store accepts them.
  return value.isWellFormed() && !value.includes('\0')
    ? { value }
    : { problem: `${name}: the value contains NUL or half of a surrogate pair. Remove that character.` }
}

const notTextual = (name: string, operator: CompareOperator, type: string): string =>
  `${name}: ${operator} does not apply to ${type}. Use eq, ne, gt, ge, lt or le.`

const firstPart = ({ name, subAttributes: [first] }: SchemaAttribute): string =>
  first === undefined ? name : `${name}.${first.name}`

function readNumber(name: string, value: string | number | boolean, strict: boolean) {
  const quotedNumber = typeof value === 'string' && !strict && /^-?\d{1,15}(\.\d{1,15})?$/.test(value)
  const number = quotedNumber ? Number(value) : value
  return typeof number === 'number' ? { value: number } : { problem: `${name} must be compared with a number.` }
}
