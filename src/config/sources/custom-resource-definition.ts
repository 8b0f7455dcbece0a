import * as z from 'zod'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { type ConfigResource, configResources } from './cluster-documents.ts'

/** A CustomResourceDefinition for each kind of object, by the name of its file. */
export const customResourceDefinitions = (): ReadonlyMap<string, JsonObject> =>
  new Map(configResources.map((resource) => [`${resource.plural}.yaml`, definitionOf(resource)]))

function definitionOf({ kind, group, version, plural, singular }: ConfigResource): JsonObject {
  const schema = { ...schemaOf(kind.schema) }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind: kind.kind, listKind: `${kind.kind}List`, plural, singular, categories: ['gatehouse'] },
      versions: kind.versions.map((name) => ({
        name,
        served: true,
        storage: name === version,
        subresources: { status: {} },
        additionalPrinterColumns: columnsOf(schema['spec']),
        schema: { openAPIV3Schema: { type: 'object', required: ['spec'], properties: schema } },
      })),
    },
  }
}

/** Versions differ only in their name, so the API server converts between them. */
function schemaOf(envelope: z.ZodType): JsonObject {
  const { properties } = z.toJSONSchema(envelope, { unrepresentable: 'any', io: 'input' })
  const spec = structuralSchema((properties?.['spec'] ?? {}) as JsonValue)
  return {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    spec,
    status: statusSchema,
  }
}

/** Open, since OpenUnison stores more there. */
const statusSchema: JsonObject = {
  type: 'object',
  'x-kubernetes-preserve-unknown-fields': true,
  properties: {
    observedGeneration: { type: 'integer', format: 'int64' },
    conditions: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      items: {
        type: 'object',
        required: ['type', 'status', 'lastTransitionTime', 'reason', 'message'],
        properties: {
          type: { type: 'string', maxLength: 316 },
          status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
          observedGeneration: { type: 'integer', format: 'int64', minimum: 0 },
          lastTransitionTime: { type: 'string', format: 'date-time' },
          reason: { type: 'string', maxLength: 1024 },
          message: { type: 'string', maxLength: 32768 },
        },
      },
    },
  },
}

const ready = '.status.conditions[?(@.type=="Ready")]'

function columnsOf(spec: JsonValue | undefined): JsonObject[] {
  const fields = isJsonObject(spec) && isJsonObject(spec['properties']) ? spec['properties'] : {}
  return [
    ...('className' in fields ? [{ name: 'Class', type: 'string', jsonPath: '.spec.className' }] : []),
    { name: 'Ready', type: 'string', jsonPath: `${ready}.status` },
    { name: 'Reason', type: 'string', jsonPath: `${ready}.reason` },
    { name: 'Message', type: 'string', jsonPath: `${ready}.message`, priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ]
}

/** Kubernetes preserves it without validation. */
const open: JsonObject = { 'x-kubernetes-preserve-unknown-fields': true }

/** A text with `#[NAME]` is validated when its value is known, and not by Kubernetes. */
const withValue: JsonObject = { pattern: '#\\[' }
const textRules = ['enum', 'pattern', 'minLength', 'maxLength'] as const
const listRules = ['minItems', 'maxItems'] as const
const numberRules = ['minimum', 'maximum'] as const

/**
 * A JSON schema for a CustomResourceDefinition, which must give every field a single type. If a field accepts
 * several types, or anything, Kubernetes preserves it unchecked: loading validates it. Kubernetes drops keys that a
 * schema does not name, or rejects them on request of the writer.
 */
function structuralSchema(schema: JsonValue): JsonObject {
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

/** The limits of a whole number without any in the schema. */
const isNoLimit = (value: JsonValue): boolean =>
  typeof value === 'number' && Math.abs(value) === Number.MAX_SAFE_INTEGER

function isNumberOrText(options: JsonValue | undefined): boolean {
  if (!Array.isArray(options)) return false
  const list: readonly JsonValue[] = options
  const types = list.map((option) => (isJsonObject(option) ? option['type'] : undefined))
  return types.length === 2 && types.includes('string') && types.includes('integer')
}
