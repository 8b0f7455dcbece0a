import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { maxBulkOperations, maxBulkPayload } from '#protocols/scim/bulk/bulk-request.ts'
import { resourceTypeDocument, schemaDocument, serviceProviderConfig } from '#protocols/scim/discovery.ts'
import { listResponse } from '#protocols/scim/lists.ts'
import { eventUris } from '#protocols/scim/security-events.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { answer, type Handler, notFound, type ScimCall } from './scim-call.ts'

/** `/ServiceProviderConfig`, `/ResourceTypes` and `/Schemas`: exactly what this gateway supports. */
export function discoveryHandlers({ config, lookups, storage }: GatewayParts) {
  const types = async () => [
    { name: 'User', endpoint: '/Users', schema: (await storage.users()).announced },
    { name: 'Group', endpoint: '/Groups', schema: (await storage.groups()).announced },
  ]
  return {
    serviceProviderConfig: async ({ base }) => {
      const features = {
        bulk: { maxOperations: maxBulkOperations, maxPayloadSize: maxBulkPayload },
        changePassword: storage.setsPasswords,
        etag: lookups.keepsVersions,
        ...(config.events === undefined ? {} : { eventUris: eventUris(config.events.payload) }),
      }
      return answer(200, serviceProviderConfig(base, features))
    },
    resourceTypes: async (call) => {
      const documents = (await types()).map((type) => resourceTypeDocument(call.base, type))
      return documentAnswer(call, 'resource type', documents)
    },
    schemas: async (call) => {
      const schemas = (await types()).flatMap(({ schema }) => [schema.core, ...schema.extensions])
      const documents = schemas.map((schema) => schemaDocument(call.base, schema))
      return documentAnswer(call, 'schema', documents)
    },
  } satisfies Record<string, Handler>
}

/** RFC 7644 4: a filter is refused with 403, so that no client takes the whole list for matches. */
function documentAnswer(call: ScimCall, what: string, documents: readonly JsonObject[]): GatewayResponse {
  if (call.query.has('filter')) {
    const text = 'This list cannot be filtered. Read it without "filter".'
    throw new GatewayError('ACCESS_DENIED', text, { publicText: text })
  }
  if (call.id === '') return answer(200, listResponse(documents, documents.length))
  const one = documents.find(({ id }) => typeof id === 'string' && id.toLowerCase() === call.id.toLowerCase())
  if (one === undefined) throw notFound(what, call.id)
  return answer(200, one)
}
