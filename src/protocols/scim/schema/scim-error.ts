import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'

export const errorSchema = 'urn:ietf:params:scim:api:messages:2.0:Error'
export const scimMediaType = 'application/scim+json'

/** The error keywords of RFC 7644 table 9 and RFC 9865 2.1 that this engine uses. */
export type ScimErrorType =
  | 'invalidFilter'
  | 'tooMany'
  | 'uniqueness'
  | 'mutability'
  | 'invalidSyntax'
  | 'invalidPath'
  | 'noTarget'
  | 'invalidValue'
  | 'invalidCursor'
  | 'expiredCursor'
  | 'invalidCount'

/** A refusal whose detail the client sees, so it names only what the client sent or the schema says. */
export function scimError(
  scimType: ScimErrorType,
  detail: string,
  options: { cause?: unknown | undefined } = {},
): GatewayError {
  const code: ErrorCode = scimType === 'uniqueness' ? 'CONFLICT' : 'BAD_REQUEST'
  return new GatewayError(code, detail, { ...options, publicText: detail, keyword: scimType })
}

/** For errors from outside this engine. */
const scimTypes: Partial<Record<ErrorCode, ScimErrorType>> = { INVALID_JSON: 'invalidSyntax', CONFLICT: 'uniqueness' }

/** The body of RFC 7644 3.12. `status` is a text there. */
export function errorBody(error: GatewayError): JsonObject {
  const scimType = error.keyword ?? scimTypes[error.code]
  return {
    schemas: [errorSchema],
    status: String(error.status),
    ...(scimType === undefined ? {} : { scimType }),
    detail: error.publicText,
  }
}

/** A name or id that the client sent, cut to a length fit for an error text. */
export const quoted = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)

/** A value that the client sent: enough to recognize it, never all. Not for passwords. */
export const redacted = (text: string): string => JSON.stringify(`${text.slice(0, text.length > 8 ? 4 : 1)}…`)
