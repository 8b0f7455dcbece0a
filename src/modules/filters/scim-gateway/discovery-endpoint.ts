import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { maxBulkOperations, maxBulkPayload } from '#protocols/scim/bulk/bulk-request.ts'
import {
  type Features,
  type ResourceType,
  resourceTypeDocument,
  schemaDocument,
  serviceProviderConfig,
} from '#protocols/scim/discovery.ts'
import { listResponse } from '#protocols/scim/lists.ts'
import { eventUris } from '#protocols/scim/security-events.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { answer, notFound, type ScimCall } from './scim-call.ts'
import type { GatewayStorage } from './stored-schema.ts'

/** `/ServiceProviderConfig`, `/ResourceTypes` and `/Schemas`: exactly what this gateway supports. */
export class DiscoveryEndpoint {
  readonly #storage: GatewayStorage

  readonly #features: () => Features

  constructor({ config, lookups, storage }: GatewayParts) {
    this.#storage = storage
    this.#features = () => ({
      bulk: { maxOperations: maxBulkOperations, maxPayloadSize: maxBulkPayload },
      changePassword: storage.setsPasswords,
      etag: lookups.keepsVersions,
      ...(config.events === undefined ? {} : { eventUris: eventUris(config.events.payload) }),
    })
  }

  async #types(): Promise<readonly ResourceType[]> {
    const [users, groups] = [await this.#storage.users(), await this.#storage.groups()]
    return [
      { name: 'User', endpoint: '/Users', schema: users.announced },
      { name: 'Group', endpoint: '/Groups', schema: groups.announced },
    ]
  }

  async serviceProviderConfig({ base }: ScimCall): Promise<GatewayResponse> {
    return answer(200, serviceProviderConfig(base, this.#features()))
  }

  async resourceTypes(call: ScimCall): Promise<GatewayResponse> {
    const types = await this.#types()
    return this.#answer(
      call,
      'resource type',
      types.map((type) => resourceTypeDocument(call.base, type)),
    )
  }

  async schemas(call: ScimCall): Promise<GatewayResponse> {
    const types = await this.#types()
    const schemas = types.flatMap(({ schema }) => [schema.core, ...schema.extensions])
    return this.#answer(
      call,
      'schema',
      schemas.map((schema) => schemaDocument(call.base, schema)),
    )
  }

  /** RFC 7644 4: a filter is refused with 403, so that no client takes the whole list for matches. */
  #answer(call: ScimCall, what: string, documents: readonly JsonObject[]): GatewayResponse {
    if (call.query.has('filter')) {
      const text = 'This list cannot be filtered. Read it without "filter".'
      throw new GatewayError('ACCESS_DENIED', text, { publicText: text })
    }
    if (call.id !== '') {
      const one = documents.find(({ id }) => typeof id === 'string' && id.toLowerCase() === call.id.toLowerCase())
      if (one === undefined) throw notFound(what, call.id)
      return answer(200, one)
    }
    return answer(200, listResponse(documents, documents.length))
  }
}
