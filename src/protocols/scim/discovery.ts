import type { JsonObject } from '#kernel/json.ts'
import { defaultCount, maxCount } from '#protocols/scim/lists.ts'
import type { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { Schema, SchemaAttribute } from '#protocols/scim/schema.ts'

const core = 'urn:ietf:params:scim:schemas:core:2.0'

export interface Features {
  readonly bulk: { readonly maxOperations: number; readonly maxPayloadSize: number }
  readonly changePassword: boolean
  readonly etag: boolean
  /** The events that the service sends (RFC 9967 4); absent if it sends none. */
  readonly eventUris?: readonly string[]
}

/** RFC 7643 5 with RFC 9865 4: what is supported now, no more. `base` is the address of the service. */
export const serviceProviderConfig = (base: string, features: Features): JsonObject => ({
  schemas: [`${core}:ServiceProviderConfig`],
  patch: { supported: true },
  bulk: { supported: true, ...features.bulk },
  filter: { supported: true, maxResults: maxCount },
  changePassword: { supported: features.changePassword },
  sort: { supported: true },
  etag: { supported: features.etag },
  pagination: {
    cursor: true,
    index: true,
    defaultPaginationMethod: 'index',
    defaultPageSize: defaultCount,
    maxPageSize: maxCount,
  },
  ...(features.eventUris === undefined
    ? {}
    : { securityEvents: { asyncRequest: 'none', eventUris: features.eventUris } }),
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

export interface ResourceType {
  readonly name: string
  /** Below the service's address, with its slash. */
  readonly endpoint: string
  readonly schema: ResourceSchema
}

export const resourceTypeDocument = (base: string, type: ResourceType): JsonObject => ({
  schemas: [`${core}:ResourceType`],
  id: type.name,
  name: type.name,
  endpoint: type.endpoint,
  description: type.schema.core.description,
  schema: type.schema.core.id,
  schemaExtensions: type.schema.extensions.map(({ id, required }) => ({ schema: id, required: required === true })),
  meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${type.name}` },
})

export const schemaDocument = (base: string, schema: Schema): JsonObject => ({
  schemas: [`${core}:Schema`],
  id: schema.id,
  name: schema.name,
  description: schema.description,
  attributes: schema.attributes.map(attributeDocument),
  meta: { resourceType: 'Schema', location: `${base}/Schemas/${schema.id}` },
})

function attributeDocument(attribute: SchemaAttribute): JsonObject {
  const { subAttributes, canonicalValues, referenceTypes, ...rest } = attribute
  return {
    ...rest,
    ...(canonicalValues === undefined ? {} : { canonicalValues }),
    ...(referenceTypes === undefined ? {} : { referenceTypes }),
    ...(subAttributes.length === 0 ? {} : { subAttributes: subAttributes.map(attributeDocument) }),
  }
}
