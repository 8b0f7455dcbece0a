import { firstValueOf, type MappingSource } from '#identity/mapping/mapped-value.ts'
import { isForbiddenKey, type JsonValue } from '#kernel/json.ts'
import { parseTemplate } from '#kernel/template.ts'

const maxLength = 64 * 1024
const maxDepth = 32

/** JSON with placeholders at its leaves. A part without placeholders is one constant. */
export type TemplateNode =
  | { readonly kind: 'constant'; readonly value: JsonValue }
  | { readonly kind: 'text'; readonly template: TextTemplate }
  | { readonly kind: 'bare'; readonly attribute: string }
  | { readonly kind: 'object'; readonly members: readonly (readonly [name: string, node: TemplateNode])[] }
  | { readonly kind: 'array'; readonly elements: readonly TemplateNode[] }

/**
 * Reads JSON in which strings may contain `${attribute}` and a value may be a bare `${attribute}`. Member names are
 * never templates. Throws an Error that says what is wrong and where.
 */
export function readJsonTemplate(text: string): TemplateNode {
  if (text.length > maxLength) throw new Error(`JSON template: longer than ${maxLength} characters`)
  return new JsonTemplateReader(text).read()
}

const placeForm = /\$\{([^\s${}]{1,256})\}/y
const stringForm = /"(?:[^"\\]|\\.)*"/y
const wordForm = /-?[0-9A-Za-z.+-]+/y

class JsonTemplateReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): TemplateNode {
    const node = this.#readValue(1)
    this.#skipSpace()
    if (this.#at < this.#text.length) throw this.#error('unexpected text behind the value')
    return node
  }

  #readValue(depth: number): TemplateNode {
    if (depth > maxDepth) throw this.#error(`nested deeper than ${maxDepth}`)
    this.#skipSpace()
    switch (this.#text[this.#at]) {
      case '{':
        return this.#readObject(depth)
      case '[':
        return this.#readArray(depth)
      case '"': {
        const value = this.#readString()
        const template = parseTextTemplate(value)
        return template.attributes.length === 0 ? { kind: 'constant', value } : { kind: 'text', template }
      }
      case '$': {
        const attribute = this.#take(placeForm)?.[1]
        if (attribute === undefined) throw this.#error('expected a placeholder such as ${name}')
        return { kind: 'bare', attribute }
      }
      default:
        return { kind: 'constant', value: this.#readWord() }
    }
  }

  #readObject(depth: number): TemplateNode {
    const members: (readonly [string, TemplateNode])[] = []
    const names = new Set<string>()
    this.#readList('}', () => {
      this.#skipSpace()
      const start = this.#at
      const name = this.#readString()
      if (isForbiddenKey(name)) throw this.#error(`the name "${name}" is not allowed`, start)
      if (name.includes('${')) throw this.#error('a placeholder is allowed only in a value', start)
      if (names.has(name)) throw this.#error(`the name "${name}" appears twice`, start)
      names.add(name)
      this.#skipSpace()
      this.#expect(':')
      members.push([name, this.#readValue(depth + 1)])
    })
    const constants = members.flatMap(([name, node]) => (node.kind === 'constant' ? [[name, node.value] as const] : []))
    if (constants.length < members.length) return { kind: 'object', members }
    return { kind: 'constant', value: Object.freeze(Object.fromEntries(constants)) }
  }

  #readArray(depth: number): TemplateNode {
    const elements: TemplateNode[] = []
    this.#readList(']', () => elements.push(this.#readValue(depth + 1)))
    const constants = elements.flatMap((node) => (node.kind === 'constant' ? [node.value] : []))
    if (constants.length < elements.length) return { kind: 'array', elements }
    return { kind: 'constant', value: Object.freeze(constants) }
  }

  #readList(end: '}' | ']', readItem: () => void): void {
    this.#at++
    this.#skipSpace()
    if (this.#text[this.#at] === end) {
      this.#at++
      return
    }
    for (;;) {
      readItem()
      this.#skipSpace()
      const separator = this.#text[this.#at]
      if (separator !== ',' && separator !== end) throw this.#error(`expected "," or "${end}"`)
      this.#at++
      if (separator === end) return
    }
  }

  #readString(): string {
    const start = this.#at
    const literal = this.#take(stringForm)?.[0]
    if (literal === undefined) throw this.#error('expected a string in double quotes')
    return this.#parse(literal, start) as string
  }

  #readWord(): JsonValue {
    const start = this.#at
    const literal = this.#take(wordForm)?.[0]
    if (literal === undefined) throw this.#error('expected a JSON value')
    return this.#parse(literal, start)
  }

  #parse(literal: string, start: number): JsonValue {
    try {
      return JSON.parse(literal) as JsonValue
    } catch {
      throw this.#error('expected a JSON value', start)
    }
  }

  #take(form: RegExp): RegExpExecArray | undefined {
    form.lastIndex = this.#at
    const match = form.exec(this.#text)
    if (match === null) return undefined
    this.#at = form.lastIndex
    return match
  }

  #expect(char: string): void {
    if (this.#text[this.#at] !== char) throw this.#error(`expected "${char}"`)
    this.#at++
  }

  #skipSpace(): void {
    while (' \t\r\n'.includes(this.#text[this.#at] ?? 'x')) this.#at++
  }

  #error(reason: string, at = this.#at): Error {
    return new Error(`JSON template: ${reason} at character ${at + 1}`)
  }
}

/** A text with `${attribute}` placeholders, each replaced with the attribute's first value. */
interface TextTemplate {
  /** Attributes it reads; none for a constant text. */
  readonly attributes: readonly string[]
  /** Undefined when none of its attributes has a value. */
  render(source: MappingSource): string | undefined
}

export function parseTextTemplate(text: string): TextTemplate {
  const template = parseTemplate(text, { keys: false, attributes: true })
  const { attributes } = template
  const [name] = attributes
  if (name === undefined) return { attributes, render: () => text }
  if (text === `\${${name}}`) return { attributes, render: (source) => firstValueOf(source, name) }
  return {
    attributes,
    render: (source) => {
      let found = false
      const attribute = (wanted: string): string | undefined => {
        const value = firstValueOf(source, wanted)
        if (value !== undefined) found = true
        return value
      }
      const output = template.render({ attribute })
      return found ? output : undefined
    },
  }
}
