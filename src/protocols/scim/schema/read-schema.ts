import type { Path } from '#kernel/issues.ts'
import { isForbiddenKey, isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'
import { ResourceSchema } from './resource-schema.ts'
import { type AttributeType, attribute, attributeTypes, type Schema, type SchemaAttribute } from './schema.ts'
import { commonAttributes } from './standard-schemas.ts'

export const maxSchemaAttributes = 200
export const maxSubAttributes = 50
export const maxListed = 200
export const maxText = 1000

/** Called with every problem and its path in the document. */
export type ReportProblem = (path: Path, message: string) => void

const schemaKeys = ['schemas', 'id', 'name', 'description', 'attributes', 'meta', 'required']
const attributeKeys = [
  ...['name', 'type', 'multiValued', 'description', 'required', 'canonicalValues', 'caseExact', 'mutability'],
  ...['returned', 'uniqueness', 'referenceTypes', 'subAttributes'],
]
export const mutabilities = ['readWrite', 'readOnly', 'immutable', 'writeOnly'] as const
export const returns = ['default', 'always', 'request', 'never'] as const
export const uniquenesses = ['none', 'server', 'global'] as const

/** Paths consist of these characters; an attribute with others could not be addressed. */
const namePattern = /^[A-Za-z$][A-Za-z0-9_$-]{0,99}$/
const uriPattern = /^[A-Za-z][A-Za-z0-9+.-]*:[^\s"()[\]]{1,250}$/

/**
 * Reads a schema document of RFC 7643 section 7, with an additional `required` at its top if every resource must have the
 * schema. Undefined if there was a problem; all problems are reported.
 */
export function readSchema(document: unknown, report: ReportProblem): Schema | undefined {
  let ok = true
  const reader = new SchemaReader((path, message) => {
    ok = false
    report(path, message)
  })
  const schema = reader.schema(document)
  return ok ? schema : undefined
}

class SchemaReader {
  readonly #report: ReportProblem

  constructor(report: ReportProblem) {
    this.#report = report
  }

  schema(document: unknown): Schema | undefined {
    if (!isJsonObject(document)) {
      this.#report([], 'a schema must be an object')
      return undefined
    }
    this.#knownKeys(document, schemaKeys, [])
    const id = this.#text(document, 'id', []) ?? ''
    if (id === '') this.#missing(document, 'id', [])
    else if (!uriPattern.test(id))
      this.#report(['id'], `"${id.slice(0, 80)}" is not a schema's URI, such as urn:example:User`)
    const name = this.#text(document, 'name', []) ?? id.slice(id.lastIndexOf(':') + 1)
    const required = this.#flag(document, 'required', [])
    const attributes = this.#attributes(document, 'attributes', [], maxSchemaAttributes, false)
    const description = this.#text(document, 'description', []) ?? ''
    return { id, name, description, attributes, ...(required === true ? { required } : {}) }
  }

  #attributes(owner: JsonObject, key: string, at: Path, most: number, isSub: boolean): SchemaAttribute[] {
    const list = owner[key]
    const path = [...at, key]
    if (!Array.isArray(list) || list.length === 0) {
      this.#report(list === undefined ? at : path, `"${key}" must be a list of attributes that is not empty`)
      return []
    }
    if (list.length > most) {
      this.#report(path, `there are more than ${most} attributes`)
      return []
    }
    const names = new Set<string>()
    return list.flatMap((entry: JsonValue, i) => {
      const read = this.#attribute(entry, [...path, i], isSub)
      if (read === undefined) return []
      const lower = read.name.toLowerCase()
      if (names.has(lower))
        this.#report([...path, i, 'name'], `"${read.name}" is there twice; letter case does not count`)
      names.add(lower)
      return [read]
    })
  }

  #attribute(raw: JsonValue, at: Path, isSub: boolean): SchemaAttribute | undefined {
    if (!isJsonObject(raw)) {
      this.#report(at, 'an attribute must be an object')
      return undefined
    }
    this.#knownKeys(raw, attributeKeys, at)
    const name = this.#name(raw, at)
    const type = this.#word(raw, 'type', attributeTypes, at) ?? 'string'
    const mutability = this.#word(raw, 'mutability', mutabilities, at) ?? 'readWrite'
    const returned = this.#word(raw, 'returned', returns, at) ?? (mutability === 'writeOnly' ? 'never' : 'default')
    if (mutability === 'writeOnly' && returned !== 'never') {
      this.#report([...at, 'returned'], 'a writeOnly attribute is returned never')
    }
    const caseExact = this.#flag(raw, 'caseExact', at)
    const canonicalValues = this.#texts(raw, 'canonicalValues', at)
    const referenceTypes = this.#texts(raw, 'referenceTypes', at)
    if (referenceTypes !== undefined && type !== 'reference') {
      this.#report([...at, 'referenceTypes'], 'only an attribute of type reference has referenceTypes')
    }
    return attribute(name, this.#text(raw, 'description', at) ?? '', {
      type,
      multiValued: this.#flag(raw, 'multiValued', at) ?? false,
      required: this.#flag(raw, 'required', at) ?? false,
      mutability,
      returned,
      uniqueness: this.#word(raw, 'uniqueness', uniquenesses, at) ?? 'none',
      ...(caseExact === undefined ? {} : { caseExact }),
      ...(canonicalValues === undefined ? {} : { canonicalValues }),
      ...(referenceTypes === undefined ? {} : { referenceTypes }),
      subAttributes: this.#subAttributes(raw, type, at, isSub),
    })
  }

  #subAttributes(raw: JsonObject, type: AttributeType, at: Path, isSub: boolean): SchemaAttribute[] {
    if (type === 'complex' && isSub) {
      this.#report([...at, 'type'], 'a sub-attribute cannot be complex itself')
      return []
    }
    if (type === 'complex') return this.#attributes(raw, 'subAttributes', at, maxSubAttributes, true)
    const subs = raw['subAttributes']
    if (subs !== undefined && !(Array.isArray(subs) && subs.length === 0)) {
      this.#report([...at, 'subAttributes'], 'only an attribute of type complex has subAttributes')
    }
    return []
  }

  #name(raw: JsonObject, at: Path): string {
    const name = this.#text(raw, 'name', at) ?? ''
    if (name === '') this.#missing(raw, 'name', at)
    else if (!namePattern.test(name)) {
      const text = `"${name.slice(0, 80)}" is not an attribute's name: a letter or $, then letters, digits, _, $ or -`
      this.#report([...at, 'name'], text)
    } else if (isForbiddenKey(name) || name in Object.prototype) {
      this.#report([...at, 'name'], `"${name}" cannot be an attribute's name`)
    }
    return name
  }

  /** A value that is not a text was reported when it was read. */
  #missing(raw: JsonObject, key: string, at: Path): void {
    const value = raw[key]
    if (value === undefined || value === '') this.#report(at, `"${key}" is required`)
  }

  #knownKeys(raw: JsonObject, known: readonly string[], at: Path): void {
    for (const key of Object.keys(raw)) {
      if (!known.includes(key))
        this.#report([...at, key], `unknown key "${key.slice(0, 80)}"${suggestion(key.slice(0, 80), known)}`)
    }
  }

  #text(raw: JsonObject, key: string, at: Path): string | undefined {
    const value = raw[key]
    if (value === undefined) return undefined
    if (typeof value === 'string' && value.length <= maxText) return value
    this.#report([...at, key], `"${key}" must be a text of at most ${maxText} characters`)
    return undefined
  }

  #flag(raw: JsonObject, key: string, at: Path): boolean | undefined {
    const value = raw[key]
    if (value === undefined || typeof value === 'boolean') return value
    this.#report([...at, key], `"${key}" must be true or false`)
    return undefined
  }

  #word<T extends string>(raw: JsonObject, key: string, words: readonly T[], at: Path): T | undefined {
    const value = raw[key]
    const word = words.find((one) => one === value)
    if (value !== undefined && word === undefined) {
      const near = typeof value === 'string' ? suggestion(value.slice(0, 80), words) : ''
      this.#report([...at, key], `"${key}" must be one of ${words.join(', ')}${near}`)
    }
    return word
  }

  #texts(raw: JsonObject, key: string, at: Path): readonly string[] | undefined {
    const value = raw[key]
    if (value === undefined) return undefined
    const list = Array.isArray(value) && value.length <= maxListed ? value : undefined
    const texts = list?.filter((one: JsonValue) => typeof one === 'string' && one.length <= maxText)
    if (texts !== undefined && texts.length === list?.length) return texts
    this.#report([...at, key], `"${key}" must be a list of at most ${maxListed} texts`)
    return undefined
  }
}

export const maxExtensions = 50

/**
 * Extends a resource type: a schema with the id of the core schema, or of an existing extension, adds its attributes to
 * that; any other is a new extension. Attributes whose names exist are reported and left out. The path of a problem starts
 * with the index of the schema.
 */
export function extendResourceSchema(
  base: ResourceSchema,
  schemas: readonly Schema[],
  report: ReportProblem,
): ResourceSchema {
  let { core } = base
  const extensions = [...base.extensions]
  schemas.forEach((schema, i) => {
    const extend = (known: Schema, reserved: readonly { name: string }[]): Schema =>
      extended(known, schema, reserved, (path, message) => report([i, ...path], message))
    const at = extensions.findIndex(({ id }) => sameUri(id, schema.id))
    const present = extensions[at]
    if (sameUri(core.id, schema.id)) core = extend(core, commonAttributes)
    else if (present !== undefined) extensions[at] = extend(present, [])
    else if (extensions.length >= maxExtensions) report([i], `there are more than ${maxExtensions} extensions`)
    else extensions.push(schema)
  })
  return new ResourceSchema(core, extensions)
}

function extended(known: Schema, more: Schema, reserved: readonly { name: string }[], report: ReportProblem): Schema {
  const taken = new Set([...known.attributes, ...reserved].map(({ name }) => name.toLowerCase()))
  const fresh = more.attributes.filter(({ name }, i) => {
    if (!taken.has(name.toLowerCase())) return true
    report(['attributes', i, 'name'], `${known.id} already has an attribute "${name}"`)
    return false
  })
  const attributes = [...known.attributes, ...fresh]
  if (attributes.length > maxSchemaAttributes) {
    report(['attributes'], `${known.id} would have more than ${maxSchemaAttributes} attributes`)
    return known
  }
  return { ...known, attributes, ...(more.required === true ? { required: true } : {}) }
}

const sameUri = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()
