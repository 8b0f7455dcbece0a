import { GatewayError } from '#kernel/errors.ts'
import { isForbiddenKey, isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

const maxDepth = 32

/**
 * The value as JSON, copied. Throws WORKFLOW_FAILED for anything that JSON can't represent, and for too deep
 * nesting.
 */
export function toJson(value: unknown, what: string, depth = 0): JsonValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (depth < maxDepth) {
    if (Array.isArray(value)) return value.map((item) => toJson(item, what, depth + 1))
    if (isPlain(value)) {
      const object: Record<string, JsonValue> = {}
      for (const [name, item] of Object.entries(value)) {
        if (item === undefined) continue
        if (isForbiddenKey(name)) throw unstorable(what)
        object[name] = toJson(item, what, depth + 1)
      }
      return object
    }
  }
  throw unstorable(what)
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

const unstorable = (what: string): GatewayError =>
  new GatewayError('WORKFLOW_FAILED', `${what} holds what cannot be stored, so that the run cannot wait`)

/** Reads stored data; throws WORKFLOW_FAILED for anything else. */
export class SavedObject {
  readonly #object: JsonObject
  readonly #what: string

  constructor(value: JsonValue | undefined, what: string) {
    if (!isJsonObject(value)) throw broken(what)
    this.#object = value
    this.#what = what
  }

  value(name: string): JsonValue | undefined {
    return Object.hasOwn(this.#object, name) ? this.#object[name] : undefined
  }

  text(name: string): string {
    const value = this.value(name)
    if (typeof value !== 'string') throw broken(`${this.#what}.${name}`)
    return value
  }

  optionalText(name: string): string | undefined {
    return this.value(name) === undefined ? undefined : this.text(name)
  }

  oneOf<T extends string>(name: string, words: readonly T[]): T {
    const value = this.value(name)
    const found = words.find((word) => word === value)
    if (found === undefined) throw broken(`${this.#what}.${name}`)
    return found
  }

  count(name: string): number {
    const value = this.value(name)
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw broken(`${this.#what}.${name}`)
    return value
  }

  list(name: string): readonly JsonValue[] {
    const value = this.value(name)
    if (!Array.isArray(value)) throw broken(`${this.#what}.${name}`)
    return value as readonly JsonValue[]
  }

  texts(name: string): string[] {
    return asTexts(this.list(name), `${this.#what}.${name}`)
  }

  /** Pairs of a name and a value. */
  pairs(name: string): (readonly [string, JsonValue])[] {
    return this.list(name).map((pair) => {
      if (!Array.isArray(pair) || pair.length !== 2) throw broken(`${this.#what}.${name}`)
      const [key, value] = pair as readonly JsonValue[]
      if (typeof key !== 'string' || value === undefined) throw broken(`${this.#what}.${name}`)
      return [key, value] as const
    })
  }

  object(name: string): SavedObject {
    return new SavedObject(this.value(name), `${this.#what}.${name}`)
  }
}

export function asTexts(value: JsonValue, what: string): string[] {
  if (!Array.isArray(value)) throw broken(what)
  return (value as readonly JsonValue[]).map((item) => {
    if (typeof item !== 'string') throw broken(what)
    return item
  })
}

export const broken = (what: string): GatewayError =>
  new GatewayError('WORKFLOW_FAILED', `the stored run cannot be read: ${what}`)
