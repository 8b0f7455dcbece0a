import { GatewayError } from '#kernel/errors.ts'

const maxTextLength = 64 * 1024
const maxOutputLength = 1024 * 1024

/** Looks up a name during rendering; undefined is the empty text. */
interface TemplateValues {
  key?(name: string): string | undefined
  attribute?(name: string): string | undefined
}

/** A text with placeholders, parsed once. Values are inserted and never parsed. */
export interface Template {
  readonly text: string
  /** Names read as `$name$`. */
  readonly keys: readonly string[]
  /** Names read as `${name}`. */
  readonly attributes: readonly string[]
  render(values: TemplateValues): string
}

export type TemplatePart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'key' | 'attribute'; readonly name: string }

/**
 * `$key$` and `${attribute}` are placeholders if the options say so; everything else is text, even a lone `$`.
 * Throws an Error for a text longer than 64 KiB; rendering more than 1 MiB throws BAD_REQUEST.
 */
export function parseTemplate(text: string, options: { keys: boolean; attributes: boolean }): Template {
  if (text.length > maxTextLength) throw new Error(`a template is at most ${maxTextLength} characters long`)
  const parts = readParts(text, options)
  const names = (kind: 'key' | 'attribute') => [
    ...new Set(parts.flatMap((part) => (part.kind === kind ? [part.name] : []))),
  ]
  const keys = names('key')
  const attributes = names('attribute')
  if (keys.length === 0 && attributes.length === 0) return { text, keys, attributes, render: () => text }
  return { text, keys, attributes, render: (values) => render(parts, values) }
}

/** The texts and the `${attribute}` placeholders in a template, in order. */
export const attributeParts = (text: string): readonly TemplatePart[] =>
  readParts(text, { keys: false, attributes: true })

/**
 * The value of a request map by a template's name. Names in templates have no dots, so `a_b` also finds the key
 * `a.b` if there is no key `a_b`.
 */
export function findTemplateKey<V>(map: ReadonlyMap<string, V>, name: string): V | undefined {
  if (map.has(name) || !name.includes('_')) return map.get(name)
  for (const [key, value] of map) {
    if (key.length === name.length && key.replaceAll('.', '_') === name) return value
  }
  return undefined
}

function render(parts: readonly TemplatePart[], values: TemplateValues): string {
  let output = ''
  for (const part of parts) {
    if (part.kind === 'text') output += part.text
    else output += (part.kind === 'key' ? values.key?.(part.name) : values.attribute?.(part.name)) ?? ''
    if (output.length > maxOutputLength) {
      throw new GatewayError('BAD_REQUEST', `a template's output is longer than ${maxOutputLength} characters`)
    }
  }
  return output
}

function readParts(text: string, options: { keys: boolean; attributes: boolean }): TemplatePart[] {
  const parts: TemplatePart[] = []
  let literal = 0
  let at = text.indexOf('$')
  while (at >= 0) {
    const place = (options.attributes && readAttribute(text, at)) || (options.keys && readKey(text, at)) || undefined
    if (place !== undefined) {
      if (at > literal) parts.push({ kind: 'text', text: text.slice(literal, at) })
      parts.push(place.part)
      literal = place.end
    }
    at = text.indexOf('$', place?.end ?? at + 1)
  }
  if (literal < text.length) parts.push({ kind: 'text', text: text.slice(literal) })
  return parts
}

interface Place {
  readonly part: TemplatePart
  readonly end: number
}

const attributeForm = /\$\{([^\s${}]{1,256})\}/y
const keyForm = /\$([A-Za-z_][A-Za-z0-9_.-]{0,255})\$/y

const readAttribute = (text: string, at: number): Place | undefined => readPlace(attributeForm, 'attribute', text, at)
const readKey = (text: string, at: number): Place | undefined => readPlace(keyForm, 'key', text, at)

function readPlace(form: RegExp, kind: 'key' | 'attribute', text: string, at: number): Place | undefined {
  form.lastIndex = at
  const name = form.exec(text)?.[1]
  return name === undefined ? undefined : { part: { kind, name }, end: form.lastIndex }
}
