import { isJsonObject } from '#kernel/json.ts'
import type { Projection } from '#protocols/scim/projection.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import { etagHeader, notModified } from './conditional.ts'
import { answer, type ScimCall } from './scim-call.ts'

/**
 * One resource as the client wants to see it, with its address and entity tag; 304 where a GET names a version that
 * the client has already.
 */
export function resourceAnswer(
  call: ScimCall,
  status: 200 | 201,
  resource: ScimResource,
  version: string | undefined,
  projection: Projection | undefined,
): GatewayResponse {
  const unchanged = call.method === 'GET' || call.method === 'HEAD' ? notModified(call, version) : undefined
  if (unchanged !== undefined) return unchanged
  const { meta } = resource
  const location = isJsonObject(meta) && typeof meta['location'] === 'string' ? { location: meta['location'] } : {}
  const shown = projection === undefined ? resource : projection.apply(resource)
  return answer(status, shown, { ...location, ...etagHeader(version) })
}
