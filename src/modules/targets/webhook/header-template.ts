import { parseParts, placesOf } from './place.ts'
import { refusedValue } from './refused-value.ts'
import type { SingleValues } from './request-template.ts'

/** A header line such as `If-Match: "{version}"`. */
export interface HeaderTemplate {
  readonly name: string
  readonly places: readonly string[]
  /** Undefined, and not sent, when a place has no value. Throws BAD_REQUEST, by name, for what no header can hold. */
  render(values: SingleValues): string | undefined
}

const lineForm = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*)$/s
const valueForm = /^[\t\x20-\x7e]*$/
/** Made by the gateway itself. */
const ownNames = new Set([
  'host',
  'content-length',
  'content-type',
  'transfer-encoding',
  'connection',
  'upgrade',
  'expect',
])

export const isHeaderName = (text: string): boolean => lineForm.test(`${text}:`) && !ownNames.has(text.toLowerCase())

/** Throws an Error that says what is wrong. */
export function parseHeaderTemplate(line: string): HeaderTemplate {
  const [, name = '', value = ''] = lineForm.exec(line) ?? []
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
        if (typeof part !== 'string' && !valueForm.test(text)) throw refusedValue(part.name, 'cannot stand in a header')
        rendered += text
      }
      return rendered
    },
  }
}
