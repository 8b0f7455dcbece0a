import { GatewayError, type GatewayErrorOptions } from '#kernel/errors.ts'

/** Codes of RFC 6749 5.2 and RFC 8693 2.2.2 that the token endpoint answers with. */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
  | 'unsupported_grant_type'
  | 'access_denied'
  | 'temporarily_unavailable'

/** A refusal of status 400. `description` is sent, so it holds nothing of a token; `detail` is for the log. */
export const oauthRefusal = (
  code: OAuthErrorCode,
  description: string,
  detail: string = description,
  options: GatewayErrorOptions = {},
): GatewayError => new GatewayError('BAD_REQUEST', detail, { ...options, publicText: description, keyword: code })

/** The code for an error that does not bring its own. */
function codeOf(error: GatewayError): string {
  if (error.keyword !== undefined) return error.keyword
  if (error.status === 403) return 'access_denied'
  if (error.status === 401) return 'invalid_grant'
  if (error.status === 429 || error.status === 503 || error.status === 504) return 'temporarily_unavailable'
  return error.status < 500 ? 'invalid_request' : 'server_error'
}

/** The body of RFC 6749 5.2: texts of the characters that it allows. */
export function oauthErrors(error: GatewayError): { headers: Record<string, string>; body: string } {
  const description = error.publicText.replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, '?')
  return {
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', pragma: 'no-cache' },
    body: JSON.stringify({ error: codeOf(error), error_description: description }),
  }
}
