import type { JsonObject } from '#kernel/json.ts'
import { maxBulkOperations, maxBulkPayload } from '#protocols/scim/bulk/bulk-request.ts'
import {
  type Features,
  resourceTypeDocument,
  schemaDocument,
  serviceProviderConfig,
} from '#protocols/scim/discovery.ts'
import { listResponse } from '#protocols/scim/list-response.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import { eventUris } from '#protocols/scim/security-events.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { answer, notFound, type ScimCall } from './scim-call.ts'

/** `/ServiceProviderConfig`, `/ResourceTypes` and `/Schemas`: what this gateway does, no more. */
export class DiscoveryEndpoint {
  readonly #types: readonly { name: string; endpoint: string; schema: GatewayConfig['users']['schema'] }[]

  readonly #features: () => Features

  constructor({ config, lookups }: GatewayParts) {
    const { users, groups } = config
    this.#features = () => ({
      bulk: { maxOperations: maxBulkOperations, maxPayloadSize: maxBulkPayload },
      // A password reaches the workflow, but only the workflow knows whether it is set anywhere.
      changePassword: false,
      etag: lookups.keepsVersions,
      ...(config.events === undefined ? {} : { eventUris: eventUris(config.events.payload) }),
    })
    this.#types = [
      { name: 'User', endpoint: '/Users', schema: users.supported },
      { name: 'Group', endpoint: '/Groups', schema: groups.supported },
    ]
  }

  async serviceProviderConfig({ base }: ScimCall): Promise<GatewayResponse> {
    return answer(200, serviceProviderConfig(base, this.#features()))
  }

  async resourceTypes(call: ScimCall): Promise<GatewayResponse> {
    return this.#answer(
      call,
      'resource type',
      this.#types.map((type) => resourceTypeDocument(call.base, type)),
    )
  }

  async schemas(call: ScimCall): Promise<GatewayResponse> {
    const schemas = this.#types.flatMap(({ schema }) => [schema.core, ...schema.extensions])
    return this.#answer(
      call,
      'schema',
      schemas.map((schema) => schemaDocument(call.base, schema)),
    )
  }

  /** RFC 7644 4: these are not filtered; a client that tries must not take the whole list for a match. */
  #answer(call: ScimCall, what: string, documents: readonly JsonObject[]): GatewayResponse {
    if (call.id !== '') {
      const one = documents.find(({ id }) => typeof id === 'string' && id.toLowerCase() === call.id.toLowerCase())
      if (one === undefined) throw notFound(what, call.id)
      return answer(200, one)
    }
    if (call.query.has('filter')) {
      throw scimError('invalidFilter', 'This list cannot be filtered.')
    }
    return answer(200, listResponse(documents, documents.length))
  }
}
