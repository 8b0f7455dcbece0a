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

/** `attribute operator value`, read but not yet understood. */
export interface FilterItem {
  readonly attribute: string
  readonly operator: '=' | '~=' | '>=' | '<=' | ':='
  /** The matching rule of an extensible match, as written. */
  readonly rule: string | undefined
  readonly value: readonly ValuePart[]
}

/** What is made of the parts of a filter, inner ones first. `item` may throw an Error whose message is the reason. */
export interface FilterBuilder<N> {
  and(filters: readonly N[]): N
  or(filters: readonly N[]): N
  not(filter: N): N
  item(item: FilterItem): N
}

/**
 * Reads RFC 4515 text of bounded length and depth; throws FilterSyntaxError. White space around filters is passed
 * over; in values every character counts. `${name}` in a value is a placeholder where `placeholders` says so.
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
        return this.#builder.and(this.#readList(depth))
      case '|':
        return this.#builder.or(this.#readList(depth))
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
