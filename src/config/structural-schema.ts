import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

/** Kubernetes keeps what it finds there, and checks nothing. */
const open: JsonObject = { 'x-kubernetes-preserve-unknown-fields': true }

/** A text that holds `#[NAME]` is checked when its value is known, and not by Kubernetes. */
const withValue: JsonObject = { pattern: '#\\[' }
const textRules = ['enum', 'pattern', 'minLength', 'maxLength'] as const
const listRules = ['minItems', 'maxItems'] as const
const numberRules = ['minimum', 'maximum'] as const

/**
 * A JSON schema as one of a CustomResourceDefinition, which must say for every field what single type it has. Where a
 * field takes several types, or anything, Kubernetes is told to keep it as it is: it is checked when it is loaded.
 * Keys that a schema does not name are dropped by Kubernetes, or refused where whoever writes asks for that.
 */
export function structuralSchema(schema: JsonValue): JsonObject {
  if (!isJsonObject(schema)) return open
  switch (schema['type']) {
    case 'object':
      return objectSchema(schema)
    case 'array':
      return { type: 'array', ...rules(schema, listRules), items: structuralSchema(schema['items'] ?? {}) }
    case 'string':
      return textSchema(schema)
    case 'integer':
      return { type: 'integer', format: 'int64', ...rules(schema, numberRules) }
    case 'number':
      return { type: 'number', ...rules(schema, numberRules) }
    case 'boolean':
      return { type: 'boolean' }
    default:
      return isNumberOrText(schema['anyOf']) ? { 'x-kubernetes-int-or-string': true } : open
  }
}

function objectSchema(schema: JsonObject): JsonObject {
  const { properties, required, additionalProperties } = schema
  if (isJsonObject(properties)) {
    const fields = Object.entries(properties).map(([name, field]) => [name, structuralSchema(field ?? {})])
    return {
      type: 'object',
      ...(Array.isArray(required) && required.length > 0 ? { required } : {}),
      properties: Object.fromEntries(fields) as JsonObject,
    }
  }
  if (isJsonObject(additionalProperties)) {
    return { type: 'object', additionalProperties: structuralSchema(additionalProperties) }
  }
  return { type: 'object', ...open }
}

function textSchema(schema: JsonObject): JsonObject {
  const found = rules(schema, textRules)
  const { minLength, ...strict } = found
  const least = minLength === undefined ? {} : { minLength }
  if (Object.keys(strict).length === 0) return { type: 'string', ...least }
  return { type: 'string', ...least, anyOf: [strict, withValue] }
}

const rules = (schema: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = schema[name]
      return value === undefined || isNoLimit(value) ? [] : [[name, value]]
    }),
  )

/** A whole number has these limits where the schema gave none. */
const isNoLimit = (value: JsonValue): boolean =>
  typeof value === 'number' && Math.abs(value) === Number.MAX_SAFE_INTEGER

function isNumberOrText(options: JsonValue | undefined): boolean {
  if (!Array.isArray(options)) return false
  const list: readonly JsonValue[] = options
  const types = list.map((option) => (isJsonObject(option) ? option['type'] : undefined))
  return types.length === 2 && types.includes('string') && types.includes('integer')
}
