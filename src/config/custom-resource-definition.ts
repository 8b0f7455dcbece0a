import * as z from 'zod'
import { type ConfigResource, configResources } from '#config/sources/kubernetes-resources.ts'
import { structuralSchema } from '#config/structural-schema.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

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

/** Versions differ in nothing but their name, so the API server converts between them by itself. */
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

/** Open, since the predecessor keeps more there. */
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
