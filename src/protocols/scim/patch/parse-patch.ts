import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { type PatchPath, parsePath } from '#protocols/scim/patch/parse-path.ts'
import type { PatchOperation, PatchTarget } from '#protocols/scim/patch/patch-operation.ts'
import { requireMessage } from '#protocols/scim/read-resource.ts'
import { clientValues, type ReadOptions, readSingle, readValue } from '#protocols/scim/read-value.ts'
import type { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { quoted, scimError } from '#protocols/scim/scim-error.ts'

export const maxOperations = 1000

/**
 * A PatchOp message as typed operations, in order. Tolerates what clients send: other letter case, string booleans,
 * dotted, qualified and filtered keys in a value without a path, readOnly and unknown keys there (ignored).
 * Throws invalidSyntax, invalidPath, invalidFilter, invalidValue, noTarget or mutability.
 */
export function parsePatch(
  schema: ResourceSchema,
  body: JsonValue,
  limits: ReadOptions = clientValues,
): PatchOperation[] {
  const list = member(requireMessage(body), 'operations')
  if (!Array.isArray(list) || list.length === 0)
    throw scimError('invalidSyntax', 'Operations must be a list that is not empty.')
  if (list.length > maxOperations) {
    const text = `There are more than ${maxOperations} operations in the request.`
    throw new GatewayError('BODY_TOO_LARGE', text, { publicText: text })
  }
  return list.flatMap((entry: JsonValue) => new OperationReader(schema, limits).read(entry))
}

type Op = PatchOperation['op']

class OperationReader {
  readonly #schema: ResourceSchema
  readonly #limits: ReadOptions

  constructor(schema: ResourceSchema, limits: ReadOptions) {
    this.#schema = schema
    this.#limits = limits
  }

  read(entry: JsonValue): PatchOperation[] {
    if (!isJsonObject(entry)) throw scimError('invalidSyntax', 'An operation must be an object.')
    const op = readOp(member(entry, 'op'))
    const path = member(entry, 'path')
    const value = member(entry, 'value')
    if (op !== 'remove' && value === undefined) throw scimError('invalidValue', `An operation "${op}" needs a value.`)
    if (path === undefined || path === null || path === '') {
      if (op === 'remove') throw scimError('noTarget', 'An operation "remove" needs a path.')
      return this.#keys(op, value)
    }
    if (typeof path !== 'string') throw scimError('invalidPath', 'A path must be a text.')
    const parsed = parsePath(path, this.#schema)
    if (parsed === undefined) throw scimError('invalidPath', `There is no attribute ${quoted(path)}.`)
    if (parsed.kind === 'schema') return this.#extension(op, parsed, value)
    refuseReadOnly(parsed)
    return this.#operation(op, parsed, value)
  }

  /** A value without a path: each of its keys is a path of its own. */
  #keys(op: 'add' | 'replace', value: JsonValue | undefined, prefix = ''): PatchOperation[] {
    if (!isJsonObject(value)) throw scimError('invalidValue', 'A value without a path must be an object.')
    return Object.entries(value).flatMap(([key, part]) => {
      const parsed = parsePath(prefix + key, this.#schema)
      if (parsed === undefined) return []
      if (parsed.kind === 'schema') return prefix === '' && part !== null ? this.#extension(op, parsed, part) : []
      return isReadOnly(parsed) ? [] : this.#operation(op, parsed, part)
    })
  }

  #extension(op: Op, path: PatchPath & { kind: 'schema' }, value: JsonValue | undefined): PatchOperation[] {
    if (op !== 'remove') return this.#keys(op, value, `${path.schema.id}:`)
    const { extension } = path
    if (extension === undefined) throw scimError('mutability', 'The core schema cannot be removed.')
    return path.schema.attributes
      .filter((attribute) => attribute.mutability !== 'readOnly')
      .map((attribute) => ({ op, target: { attribute, extension } }))
  }

  #operation(op: Op, target: PatchTarget, raw: JsonValue | undefined): PatchOperation[] {
    const { attribute, sub, filter } = target
    const leaf = sub ?? attribute
    if (op === 'remove') {
      const several = attribute.multiValued && sub === undefined && filter === undefined
      if (!several || raw === undefined || raw === null) return [{ op, target }]
      const values = readValue(this.#schema, attribute, raw, this.#limits)
      return Array.isArray(values) ? [{ op, target, values }] : []
    }
    const whole = filter === undefined && sub === undefined
    const value = whole
      ? readValue(this.#schema, leaf, raw ?? null, this.#limits)
      : sub === undefined
        ? readSingle(this.#schema, leaf, unwrapped(raw ?? null), this.#limits)
        : readValue(this.#schema, leaf, raw ?? null, this.#limits)
    if (value !== undefined) return [{ op, target, value }]
    return op === 'replace' ? [{ op: 'remove', target }] : []
  }
}

/** A member of a message by its name in any letter case. */
function member(object: JsonObject, name: string): JsonValue | undefined {
  for (const key of Object.keys(object)) if (key.toLowerCase() === name) return object[key]
  return undefined
}

function readOp(op: JsonValue | undefined): Op {
  const word = typeof op === 'string' ? op.toLowerCase() : ''
  if (word === 'add' || word === 'replace' || word === 'remove') return word
  throw scimError('invalidSyntax', 'op must be add, replace or remove.')
}

const isReadOnly = (target: PatchTarget): boolean =>
  target.attribute.mutability === 'readOnly' || target.sub?.mutability === 'readOnly'

function refuseReadOnly(target: PatchTarget): void {
  if (!isReadOnly(target)) return
  throw scimError('mutability', `${(target.sub ?? target.attribute).name} cannot be changed.`)
}

const unwrapped = (raw: JsonValue): JsonValue => (Array.isArray(raw) && raw.length === 1 ? (raw[0] ?? null) : raw)
