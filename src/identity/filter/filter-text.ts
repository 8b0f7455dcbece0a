import type { CompareFilter, Filter, SubstringFilter } from '#identity/filter/ast.ts'

/** RFC 4515 text, at most 8 KiB and 50 levels deep; throws FilterSyntaxError. */
export function parseFilter(text: string): Filter {
  return readFilter<Filter>(text, false, {
    list: (kind, filters) => ({ kind, filters }),
    not: (filter) => ({ kind: 'not', filter }),
    item: itemFilter,
  })
}

const comparisons = {
  '=': 'equal',
  '~=': 'approximate',
  '>=': 'greaterOrEqual',
  '<=': 'lessOrEqual',
} as const satisfies Record<string, CompareFilter['kind']>

/** The filter of an item without placeholders. Throws an Error with the reason if it is invalid. */
export function itemFilter({ attribute, operator, rule, value }: FilterItem): Filter {
  const hasWildcard = value.some((part) => part.kind === 'wildcard')
  if (operator === '=' && hasWildcard) return substring(attribute, value)
  if (hasWildcard) throw new Error(`"*" in a value behind "${operator}" must be escaped (\\2a)`)
  const text = joinText(value)
  if (operator !== ':=') return { kind: comparisons[operator], attribute, value: text }
  const known = matchingRules.find(({ name, oid }) => [name.toLowerCase(), oid].includes((rule ?? '').toLowerCase()))
  if (known === undefined) throw new Error(`the matching rule "${rule}" is not supported`)
  const { caseExact, substrings } = known
  if (substrings) return substring(attribute, readSubstringAssertion(text), caseExact)
  return { kind: 'equal', attribute, value: text, caseExact }
}

/** The matching rules (RFC 4517) that say whether letter case counts. */
const matchingRules = [
  { name: 'caseExactMatch', oid: '2.5.13.5', caseExact: true, substrings: false },
  { name: 'caseExactSubstringsMatch', oid: '2.5.13.7', caseExact: true, substrings: true },
  { name: 'caseIgnoreMatch', oid: '2.5.13.2', caseExact: false, substrings: false },
  { name: 'caseIgnoreSubstringsMatch', oid: '2.5.13.4', caseExact: false, substrings: true },
] as const

function substring(attribute: string, value: readonly ValuePart[], caseExact?: boolean): Filter {
  const fragments = splitAtWildcards(value)
  const initial = fragments.shift() ?? ''
  const final = fragments.pop() ?? ''
  const any = fragments.filter((fragment) => fragment !== '')
  if (initial === '' && final === '' && any.length === 0) return { kind: 'present', attribute }
  return {
    kind: 'substring',
    attribute,
    ...(initial === '' ? {} : { initial }),
    any,
    ...(final === '' ? {} : { final }),
    caseExact,
  }
}

function splitAtWildcards(value: readonly ValuePart[]): string[] {
  const fragments = ['']
  for (const part of value) {
    if (part.kind === 'wildcard') fragments.push('')
    else if (part.kind === 'text') fragments.push((fragments.pop() ?? '') + part.text)
  }
  return fragments
}

const joinText = (value: readonly ValuePart[]): string =>
  value.map((part) => (part.kind === 'text' ? part.text : '')).join('')

/** RFC 4517 3.3.30: `*` between fragments, `\2A` and `\5C` within them. */
function readSubstringAssertion(text: string): ValuePart[] {
  const parts = text.split('*').flatMap((fragment, i): ValuePart[] => {
    const literal: ValuePart = { kind: 'text', text: unescapeFragment(fragment) }
    return i === 0 ? [literal] : [{ kind: 'wildcard' }, literal]
  })
  if (parts.length === 1) throw new Error('a substring assertion needs a "*" (\\2a)')
  return parts
}

const unescapeFragment = (text: string): string =>
  text.replace(/\\(2a|5c)/gi, (pair) => (pair.toLowerCase() === '\\2a' ? '*' : '\\'))

/**
 * RFC 4515 text. It has no form for `greater` and `less`, which become `(&(a>=v)(!(a=v)))`. Case-sensitive
 * comparison becomes a matching rule, which exists for equality and substrings only.
 */
export function printFilter(filter: Filter): string {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return `(${filter.kind === 'and' ? '&' : '|'}${filter.filters.map(printFilter).join('')})`
    case 'not':
      return `(!${printFilter(filter.filter)})`
    case 'present':
      return `(${filter.attribute}=*)`
    case 'substring':
      return printSubstring(filter)
    case 'greater':
      return `(&${printComparison(filter, '>=')}(!${printEquality(filter)}))`
    case 'less':
      return `(&${printComparison(filter, '<=')}(!${printEquality(filter)}))`
    case 'greaterOrEqual':
      return printComparison(filter, '>=')
    case 'lessOrEqual':
      return printComparison(filter, '<=')
    case 'approximate':
      return printComparison(filter, '~=')
    case 'equal':
      return printEquality(filter)
  }
}

const printEquality = (filter: CompareFilter): string =>
  printComparison(filter, filter.caseExact === true ? ':caseExactMatch:=' : '=')

const printComparison = ({ attribute, value }: CompareFilter, operator: string): string =>
  `(${attribute}${operator}${escapeFilterValue(value)})`

function printSubstring({ attribute, initial = '', any, final = '', caseExact }: SubstringFilter): string {
  const fragments = [initial, ...any, final]
  if (caseExact !== true) return `(${attribute}=${fragments.map(escapeFilterValue).join('*')})`
  const assertion = fragments.map((fragment) => fragment.replaceAll('\\', '\\5C').replaceAll('*', '\\2A')).join('*')
  return `(${attribute}:caseExactSubstringsMatch:=${escapeFilterValue(assertion)})`
}

const escapeFilterValue = (value: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are escaped.
  value.replace(/[*()\\\0-\x1f]/g, (char) => `\\${char.charCodeAt(0).toString(16).padStart(2, '0')}`)

const maxLength = 8192
const maxDepth = 50

export class FilterSyntaxError extends Error {
  /** Counted from 1. */
  readonly position: number

  constructor(reason: string, position: number) {
    super(`filter: ${reason} at character ${position}`)
    this.name = 'FilterSyntaxError'
    this.position = position
  }
}

export type ValuePart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'wildcard' }
  | { readonly kind: 'placeholder'; readonly name: string }

/** `attribute operator value`, not yet interpreted. */
export interface FilterItem {
  readonly attribute: string
  readonly operator: '=' | '~=' | '>=' | '<=' | ':='
  /** The matching rule of an extensible match, as written. */
  readonly rule: string | undefined
  readonly value: readonly ValuePart[]
}

/**
 * Builds the result from the parts of a filter, inner ones first. `item` may throw an Error whose message is the
 * reason.
 */
interface FilterBuilder<N> {
  list(kind: 'and' | 'or', filters: readonly N[]): N
  not(filter: N): N
  item(item: FilterItem): N
}

/**
 * Reads RFC 4515 text of bounded length and depth; throws FilterSyntaxError. Skips white space around filters; in
 * values every character counts. With `placeholders`, `${name}` in a value is a placeholder.
 */
export function readFilter<N>(text: string, placeholders: boolean, builder: FilterBuilder<N>): N {
  if (text.length > maxLength) throw new FilterSyntaxError(`longer than ${maxLength} characters`, maxLength + 1)
  return new FilterReader(text, placeholders, builder).read()
}

class FilterReader<N> {
  readonly #text: string
  readonly #placeholders: boolean
  readonly #builder: FilterBuilder<N>
  #at = 0

  constructor(text: string, placeholders: boolean, builder: FilterBuilder<N>) {
    this.#text = text
    this.#placeholders = placeholders
    this.#builder = builder
  }

  read(): N {
    this.#skipSpace()
    if (this.#text[this.#at] !== '(') throw this.#error('a filter must be in parentheses, such as (cn=x); expected "("')
    const filter = this.#readFilter(1)
    this.#skipSpace()
    if (this.#at < this.#text.length) throw this.#error('unexpected text behind the filter')
    return filter
  }

  #readFilter(depth: number): N {
    if (depth > maxDepth) throw this.#error(`nested deeper than ${maxDepth}`)
    this.#expect('(')
    this.#skipSpace()
    const filter = this.#readComponent(depth)
    this.#expect(')')
    return filter
  }

  #readComponent(depth: number): N {
    switch (this.#text[this.#at]) {
      case '&':
        return this.#builder.list('and', this.#readList(depth))
      case '|':
        return this.#builder.list('or', this.#readList(depth))
      case '!': {
        this.#at++
        this.#skipSpace()
        const filter = this.#readFilter(depth + 1)
        this.#skipSpace()
        return this.#builder.not(filter)
      }
      default:
        return this.#readItem()
    }
  }

  #readList(depth: number): N[] {
    this.#at++
    const filters: N[] = []
    for (;;) {
      this.#skipSpace()
      if (this.#text[this.#at] !== '(') return filters
      filters.push(this.#readFilter(depth + 1))
    }
  }

  #readItem(): N {
    const start = this.#at
    const attribute = this.#readName()
    if (attribute === '') {
      throw this.#error(
        this.#text.startsWith('${', this.#at)
          ? 'a placeholder is allowed only in a value'
          : 'expected an attribute name',
      )
    }
    const rule = this.#text[this.#at] === ':' ? this.#readRule() : undefined
    const operator = this.#readOperator(rule !== undefined)
    const value = this.#readValue()
    try {
      return this.#builder.item({ attribute, operator, rule, value })
    } catch (error) {
      throw this.#error(error instanceof Error ? error.message : String(error), start)
    }
  }

  #readName(): string {
    const start = this.#at
    while (/^[A-Za-z0-9._;-]$/.test(this.#text.charAt(this.#at))) this.#at++
    return this.#text.slice(start, this.#at)
  }

  #readRule(): string {
    this.#at++
    const rule = this.#readName()
    if (rule === '') throw this.#error('expected the name of a matching rule')
    return rule
  }

  #readOperator(extensible: boolean): FilterItem['operator'] {
    for (const operator of extensible ? ([':='] as const) : (['=', '~=', '>=', '<='] as const)) {
      if (!this.#text.startsWith(operator, this.#at)) continue
      this.#at += operator.length
      return operator
    }
    throw this.#error(`expected ${extensible ? '":="' : '"="'} behind the attribute name`)
  }

  #readValue(): ValuePart[] {
    const parts: ValuePart[] = []
    let text = ''
    const add = (part: ValuePart | undefined): void => {
      if (text !== '') parts.push({ kind: 'text', text })
      text = ''
      if (part !== undefined) parts.push(part)
    }
    for (;;) {
      const char = this.#text[this.#at]
      if (char === undefined || char === ')') break
      if (char === '(') throw this.#error('"(" in a value must be escaped (\\28)')
      if (char === '\0') throw this.#error('a zero byte in a value must be escaped (\\00)')
      if (char === '\\') {
        text += this.#readEscapes()
      } else if (char === '*') {
        add({ kind: 'wildcard' })
        this.#at++
      } else if (this.#placeholders && this.#text.startsWith('${', this.#at)) {
        add({ kind: 'placeholder', name: this.#readPlaceholder() })
      } else {
        text += char
        this.#at++
      }
    }
    add(undefined)
    return parts
  }

  #readPlaceholder(): string {
    const end = this.#text.indexOf('}', this.#at)
    const name = this.#text.slice(this.#at + 2, Math.max(end, this.#at + 2))
    if (end < 0 || name === '' || /[(){$*\\\s]/.test(name)) throw this.#error('expected a placeholder such as ${sub}')
    this.#at = end + 1
    return name
  }

  /** A run of `\xx`, which are the bytes of UTF-8 text. */
  #readEscapes(): string {
    const start = this.#at
    const bytes: number[] = []
    while (this.#text[this.#at] === '\\') {
      const pair = this.#text.slice(this.#at + 1, this.#at + 3)
      if (!/^[0-9A-Fa-f]{2}$/.test(pair)) throw this.#error('"\\" must be followed by two hexadecimal digits')
      bytes.push(Number.parseInt(pair, 16))
      this.#at += 3
    }
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes))
    } catch {
      throw this.#error('the escaped bytes are not UTF-8', start)
    }
  }

  #skipSpace(): void {
    while (/^\s$/.test(this.#text.charAt(this.#at))) this.#at++
  }

  #expect(char: string): void {
    if (this.#text[this.#at] !== char) throw this.#error(`expected "${char}"`)
    this.#at++
  }

  #error(reason: string, at = this.#at): FilterSyntaxError {
    return new FilterSyntaxError(reason, at + 1)
  }
}
