import { GatewayError } from '#kernel/errors.ts'
import { entityTag, parseEntityTags } from '#protocols/scim/entity-tag.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import type { ScimCall } from './scim-call.ts'

/**
 * Checks If-Match and If-None-Match before a change. Gives the version that the change must still find when it is
 * written, where the client named one. Throws VERSION_MISMATCH (412), invalidValue when a header is malformed.
 */
export function requireMatch(call: ScimCall, version: string | undefined): string | undefined {
  const wanted = call.ifMatch === undefined ? undefined : parseEntityTags(call.ifMatch, 'If-Match')
  const unwanted = call.ifNoneMatch === undefined ? undefined : parseEntityTags(call.ifNoneMatch, 'If-None-Match')
  if (wanted?.matches(version) === false || unwanted?.matches(version) === true) {
    throw new GatewayError('VERSION_MISMATCH', `the resource has version ${version ?? 'none'}`, {
      ...(version === undefined ? {} : { headers: { etag: entityTag(version) } }),
    })
  }
  return wanted === undefined || wanted.any ? undefined : version
}

/** The answer to a GET whose client has this version already (304); undefined when it has not. */
export function notModified(call: ScimCall, version: string | undefined): GatewayResponse | undefined {
  if (call.ifNoneMatch === undefined) return undefined
  if (!parseEntityTags(call.ifNoneMatch, 'If-None-Match').matches(version)) return undefined
  return { status: 304, headers: etagHeader(version) }
}

export const etagHeader = (version: string | undefined): Record<string, string> =>
  version === undefined ? {} : { etag: entityTag(version) }
