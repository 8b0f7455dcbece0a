import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { defaultCount, listResponse, maxCount } from '#protocols/scim/lists.ts'
import { coreUrn, schemaDocument } from '#protocols/scim/schema/schema.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { maxBulkOperations, maxBulkPayload } from './bulk.ts'
import type { GatewayParts } from './run-workflow.ts'
import { answer, type Handler, notFound, type ScimCall } from './scim-call.ts'
import { eventUris } from './security-events.ts'

/** `/ServiceProviderConfig`, `/ResourceTypes` and `/Schemas`: exactly what this gateway supports. */
export function discoveryHandlers(parts: GatewayParts, types: readonly GatewayParts[]) {
  const { storage } = parts
  const announced = async () => [
    { endpoint: '/Users', schema: (await storage.users()).announced },
    { endpoint: '/Groups', schema: (await storage.groups()).announced },
    ...(await Promise.all(
      types.map(async ({ storage, config }) => ({
        endpoint: config.users.type.endpoint,
        schema: (await storage.users()).announced,
      })),
    )),
  ]
  return {
    serviceProviderConfig: async ({ base }) => answer(200, serviceProviderConfig(base, parts)),
    resourceTypes: async (call) => {
      const documents = (await announced()).map(({ endpoint, schema: { core, extensions } }) => ({
        schemas: [`${coreUrn}:ResourceType`],
        id: core.name,
        name: core.name,
        endpoint,
        description: core.description,
        schema: core.id,
        schemaExtensions: extensions.map(({ id, required }) => ({ schema: id, required: required === true })),
        meta: { resourceType: 'ResourceType', location: `${call.base}/ResourceTypes/${core.name}` },
      }))
      return documentAnswer(call, 'resource type', documents)
    },
    schemas: async (call) => {
      const all = (await announced()).flatMap(({ schema }) => [schema.core, ...schema.extensions])
      return documentAnswer(
        call,
        'schema',
        all.map((schema) => schemaDocument(call.base, schema)),
      )
    },
  } satisfies Record<string, Handler>
}

/** RFC 7643 5 with RFC 9865 4 and RFC 9967 4: what is supported now, no more. */
const serviceProviderConfig = (base: string, { config, lookups, storage }: GatewayParts): JsonObject => ({
  schemas: [`${coreUrn}:ServiceProviderConfig`],
  patch: { supported: true },
  bulk: { supported: true, maxOperations: maxBulkOperations, maxPayloadSize: maxBulkPayload },
  filter: { supported: true, maxResults: maxCount },
  changePassword: { supported: storage.setsPasswords },
  sort: { supported: true },
  etag: { supported: lookups.keepsVersions },
  pagination: {
    cursor: true,
    index: true,
    defaultPaginationMethod: 'index',
    defaultPageSize: defaultCount,
    maxPageSize: maxCount,
  },
  ...(config.events === undefined
    ? {}
    : { securityEvents: { asyncRequest: 'none', eventUris: eventUris(config.events.payload) } }),
  authenticationSchemes: [
    {
      type: 'oauthbearertoken',
      name: 'OAuth Bearer Token',
      description: 'A bearer token in the Authorization header',
      specUri: 'https://www.rfc-editor.org/info/rfc6750',
      primary: true,
    },
  ],
  meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
})

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
