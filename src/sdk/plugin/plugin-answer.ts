import { Attributes } from '#identity/attributes.ts'
import { readTime } from '#identity/entry-times.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import { isForbiddenKey, isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { TargetChange } from '#sdk/target/target.ts'

/**
 * Reads the answer of a plug-in's function, field by field. An invalid answer throws an error that names the function
 * and the field.
 */
export class PluginAnswerReader {
  readonly #functionName: string
  readonly #code: ErrorCode

  constructor(functionName: string, code: ErrorCode = 'TARGET_FAILED') {
    this.#functionName = functionName
    this.#code = code
  }

  /** For one item of a list. */
  at(index: number): PluginAnswerReader {
    return new PluginAnswerReader(`${this.#functionName}[${index}]`, this.#code)
  }

  malformed(problem: string): GatewayError {
    return new GatewayError(this.#code, `the answer of ${this.#functionName} is malformed: ${problem}`)
  }

  object(value: JsonValue | undefined, field = 'it'): JsonObject {
    if (!isJsonObject(value)) throw this.malformed(`${field} must be an object`)
    return value
  }

  flag(value: JsonValue | undefined): boolean {
    if (typeof value !== 'boolean') throw this.malformed('it must be true or false')
    return value
  }

  /** Not empty. */
  text(value: JsonValue | undefined, field: string): string {
    if (typeof value !== 'string' || value === '') throw this.malformed(`${field} must be a text that is not empty`)
    return value
  }

  texts(value: JsonValue | undefined, field: string): string[] {
    if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) {
      throw this.malformed(`${field} must be a list of texts`)
    }
    return value
  }

  /** Empty if the value is absent or null: to be spread into an object. */
  optionalText<const N extends string>(name: N, value: JsonValue | undefined): { readonly [K in N]?: string } {
    if (value === undefined || value === null) return {}
    if (typeof value !== 'string') throw this.malformed(`${name} must be a text`)
    return { [name]: value } as { readonly [K in N]: string }
  }

  /** An ISO 8601 time, in UTC unless it has an offset; empty if it is absent or null. */
  optionalTime<const N extends string>(name: N, value: JsonValue | undefined): { readonly [K in N]?: Date } {
    if (value === undefined || value === null) return {}
    const time = typeof value === 'string' ? readTime(value) : undefined
    if (time === undefined) throw this.malformed(`${name} must be a time such as 2026-01-31T08:00:00Z`)
    return { [name]: time } as { readonly [K in N]: Date }
  }

  attributes(value: JsonValue | undefined): Attributes {
    const attributes = new Attributes()
    for (const [name, values] of Object.entries(this.object(value, 'attributes'))) {
      if (name === '' || isForbiddenKey(name)) throw this.malformed(`"${name}" cannot be an attribute`)
      attributes.add(name, this.texts(values, `attributes.${name}`))
    }
    return attributes
  }

  /** An entry of `audit`. Without a subject, it is about an attribute. */
  change(value: JsonValue): TargetChange {
    const entry = this.object(value, 'the audit entry')
    const subject = subjects.find((word) => word === (entry['subject'] ?? 'attribute'))
    const action = actions.find((word) => word === entry['action'])
    if (subject === undefined) throw this.malformed('the subject of an audit entry is unknown')
    if (action === undefined) throw this.malformed('the action of an audit entry is unknown')
    const attribute = this.text(entry['attribute'], 'the attribute of an audit entry')
    return { subject, action, attribute, ...this.optionalText('value', entry['value']) }
  }
}

const subjects: readonly TargetChange['subject'][] = ['entry', 'attribute', 'group']
const actions: readonly TargetChange['action'][] = ['add', 'replace', 'delete']
