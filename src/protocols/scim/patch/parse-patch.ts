import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { type FilterOptions, parseElementFilter, tokenize } from '#protocols/scim/filter/parse-filter.ts'
import {
  clientValues,
  complexInText,
  jsonInText,
  type ReadOptions,
  readSingle,
  readValue,
  requireMessage,
} from '#protocols/scim/read-resource.ts'
import type { AttributePath, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import type { Schema } from '#protocols/scim/schema/schema.ts'
import { quoted, scimError } from '#protocols/scim/schema/scim-error.ts'

export const maxOperations = 1000
export const patchSchema = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

/**
 * A PatchOp message as typed operations, in order. Tolerates variants of clients: other letter case, string
 * booleans, dotted, qualified and filtered keys in a value without a path, readOnly and unknown keys there
 * (ignored); in strict mode, only readOnly keys. `unknown` may reject unknown ones. Throws invalidSyntax,
 * invalidPath, invalidFilter, invalidValue, noTarget or mutability.
 */
export function parsePatch(
  schema: ResourceSchema,
  body: JsonValue,
  options: ReadOptions = clientValues,
): PatchOperation[] {
  const list = member(requireMessage(body, options.strict === true ? patchSchema : undefined), 'operations')
  if (!Array.isArray(list) || list.length === 0)
    throw scimError('invalidSyntax', 'Operations is required: a list with at least one operation.')
  if (list.length > maxOperations) {
    const text = `Operations: there are more than ${maxOperations}. Split the request.`
    throw new GatewayError('BODY_TOO_LARGE', text, { publicText: text })
  }
  const reader = new OperationReader(schema, options)
  return list.flatMap((entry: JsonValue, index) => reader.read(entry, `Operations[${index}]`))
}

type Op = PatchOperation['op']

class OperationReader {
  readonly #schema: ResourceSchema
  readonly #options: ReadOptions

  constructor(schema: ResourceSchema, options: ReadOptions) {
    this.#schema = schema
    this.#options = options
  }

  /** `at` is the place of the operation in the message, for errors. */
  read(entry: JsonValue, at: string): PatchOperation[] {
    if (!isJsonObject(entry)) throw scimError('invalidSyntax', `${at} must be an object.`)
    const op = readOp(member(entry, 'op'), at)
    const path = member(entry, 'path')
    const value = member(entry, 'value')
    if (op !== 'remove' && value === undefined) throw scimError('invalidValue', `${at}: "${op}" needs a value.`)
    if (path === undefined || (this.#options.strict !== true && (path === null || path === ''))) {
      if (op === 'remove') throw scimError('noTarget', `${at}: "remove" needs a path.`)
      return this.#keys(op, this.#objectIn(value))
    }
    if (typeof path !== 'string') throw scimError('invalidPath', `${at}: path must be a text.`)
    const parsed = parsePath(path, this.#schema, this.#options)
    if (parsed === undefined) {
      if (this.#options.unknown !== undefined && this.#options.strict !== true) {
        this.#options.unknown(path)
        return []
      }
      throw scimError(
        'invalidPath',
        `path: the resource has no attribute ${quoted(path)}. Check the name, and the schema in /Schemas.`,
      )
    }
    if (parsed.kind === 'schema') return this.#extension(op, parsed, value)
    refuseReadOnly(parsed)
    return this.#operation(op, parsed, value)
  }

  #objectIn(value: JsonValue | undefined): JsonValue | undefined {
    if (typeof value !== 'string' || this.#options.strict === true) return value
    return jsonInText(value) ?? value
  }

  /** A value without a path: each of its keys is a separate path. */
  #keys(op: 'add' | 'replace', value: JsonValue | undefined, prefix = ''): PatchOperation[] {
    if (!isJsonObject(value))
      throw scimError('invalidValue', 'Operations: without a path, value must be an object of attributes.')
    return Object.entries(value).flatMap(([key, part]) => {
      const parsed = parsePath(prefix + key, this.#schema, this.#options)
      const known = parsed !== undefined && (prefix === '' || parsed.kind === 'attribute')
      if (!known) {
        if (this.#options.strict === true)
          throw scimError(
            'invalidPath',
            `value: the resource has no attribute ${quoted(key)}. Check the name, and the schema in /Schemas.`,
          )
        // Some clients send an extension like a separate resource.
        const isSchemas = prefix !== '' && key.toLowerCase() === 'schemas'
        if (part !== null && !isSchemas) this.#options.unknown?.(prefix + key)
        return []
      }
      if (parsed.kind === 'schema') return this.#extension(op, parsed, part)
      return isReadOnly(parsed) ? [] : this.#operation(op, parsed, part)
    })
  }

  /** A null for a whole extension removes it, as for an attribute. */
  #extension(op: Op, path: PatchPath & { kind: 'schema' }, value: JsonValue | undefined): PatchOperation[] {
    if (op === 'add' && value === null) return []
    if (op !== 'remove' && value !== null) return this.#keys(op, this.#objectIn(value), `${path.schema.id}:`)
    const { extension } = path
    if (extension === undefined)
      throw scimError('mutability', 'path: the core schema cannot be removed. Name an attribute.')
    return path.schema.attributes
      .filter((attribute) => attribute.mutability !== 'readOnly')
      .map((attribute) => ({ op: 'remove', target: { attribute, extension } }))
  }

  #operation(op: Op, target: PatchTarget, raw: JsonValue | undefined): PatchOperation[] {
    const { attribute, sub, filter } = target
    if (op === 'remove') {
      const several = attribute.multiValued && sub === undefined && filter === undefined
      if (!several || raw === undefined || raw === null) return [{ op, target }]
      const values = readValue(this.#schema, attribute, raw, this.#options)
      return Array.isArray(values) ? [{ op, target, values }] : []
    }
    if (sub?.name === 'value' && typeof raw === 'string') {
      const written = complexInText(this.#schema, attribute, raw, this.#options)
      if (written !== undefined) return this.#parts(op, target, written)
    }
    const single = filter !== undefined && sub === undefined
    const value = single
      ? readSingle(this.#schema, attribute, this.#unwrapped(raw ?? null), this.#options)
      : readValue(this.#schema, sub ?? attribute, raw ?? null, this.#options)
    if (value !== undefined) return [{ op, target, value }]
    if (op === 'replace') return [{ op: 'remove', target, replaces: true }]
    if (single) throw scimError('invalidValue', `${attribute.name}: the value to add is empty. Send at least one part.`)
    return []
  }

  /** An element that was sent as JSON in its `value`: part by part, the value last, since the path may filter by it. */
  #parts(op: 'add' | 'replace', target: PatchTarget, written: JsonObject): PatchOperation[] {
    const read = readSingle(this.#schema, target.attribute, written, this.#options)
    if (!isJsonObject(read)) return []
    const names = Object.keys(read).sort((a, b) => Number(a === 'value') - Number(b === 'value'))
    return names.flatMap((name): PatchOperation[] => {
      const sub = this.#schema.subAttribute(target.attribute, name)
      const value = read[name]
      return sub === undefined || value === undefined ? [] : [{ op, target: { ...target, sub }, value }]
    })
  }

  #unwrapped(raw: JsonValue): JsonValue {
    return Array.isArray(raw) && raw.length === 1 && this.#options.strict !== true ? (raw[0] ?? null) : raw
  }
}

/** A member of a message by its name in any letter case. */
function member(object: JsonObject, name: string): JsonValue | undefined {
  for (const key of Object.keys(object)) if (key.toLowerCase() === name) return object[key]
  return undefined
}

function readOp(op: JsonValue | undefined, at: string): Op {
  const word = typeof op === 'string' ? op.toLowerCase() : ''
  if (word === 'add' || word === 'replace' || word === 'remove') return word
  throw scimError('invalidSyntax', `${at}: op must be "add", "replace" or "remove".`)
}

const isReadOnly = (target: PatchTarget): boolean =>
  target.attribute.mutability === 'readOnly' || target.sub?.mutability === 'readOnly'

function refuseReadOnly(target: PatchTarget): void {
  if (!isReadOnly(target)) return
  throw scimError('mutability', `${(target.sub ?? target.attribute).name} is readOnly. Leave it out.`)
}

const maxPathLength = 4096

type PatchPath =
  | { readonly kind: 'schema'; readonly schema: Schema; readonly extension?: string | undefined }
  | ({ readonly kind: 'attribute' } & PatchTarget)

/**
 * `attr`, `attr.sub`, `attr[filter]`, `attr[filter].sub`, each with or without a schema's URN, or the URN alone.
 * Undefined if the schemas have no such attribute. Throws invalidPath or invalidFilter if it is malformed.
 */
function parsePath(text: string, schema: ResourceSchema, options: FilterOptions = {}): PatchPath | undefined {
  if (text.length > maxPathLength)
    throw scimError('invalidPath', `path must not be longer than ${maxPathLength} characters.`)
  const resolved = schema.resolve(/^[^\s()[\]"]*/.exec(text)?.[0] ?? '', options.strict)
  if (resolved === undefined) return undefined
  const [, ...rest] = tokenize(text, 'invalidPath')
  if (rest.length === 0) return resolved
  const close = rest.findLastIndex((token) => token.kind === ']')
  const tail = rest.slice(close + 1)
  const [after] = tail
  if (rest[0]?.kind !== '[' || close < 0 || tail.length > 1) throw malformed(text)
  if (after !== undefined && (after.kind !== 'word' || !after.text.startsWith('.'))) throw malformed(text)
  if (resolved.kind === 'schema' || resolved.sub !== undefined || !resolved.attribute.multiValued) throw malformed(text)
  const filter = parseElementFilter(rest.slice(1, close), schema, resolved, options)
  if (after === undefined) return { ...resolved, filter }
  const sub = schema.subAttribute(resolved.attribute, after.text.slice(1))
  return sub === undefined ? undefined : { ...resolved, filter, sub }
}

const malformed = (text: string) =>
  scimError('invalidPath', `path: ${quoted(text)} is malformed. Use attr, attr.sub, attr[filter] or attr[filter].sub.`)

/** The target of an operation: an attribute, the elements that a filter picks, or a sub-attribute of either. */
export interface PatchTarget extends AttributePath {
  readonly filter?: ScimFilter
}

/** Normalized: names are resolved, the value has the schema's form, and a `replace` without a value is a `remove`. */
export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly target: PatchTarget; readonly value: JsonValue }
  /** With values, only those are removed from a multi-valued attribute. */
  | {
      readonly op: 'remove'
      readonly target: PatchTarget
      readonly values?: readonly JsonValue[]
      /** The client sent a `replace` without a value; its filter must match something, unlike that of a `remove`. */
      readonly replaces?: true
    }
