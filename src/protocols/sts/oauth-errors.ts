import { GatewayError, type GatewayErrorOptions } from '#kernel/errors.ts'

/**
 * What the token endpoint refuses with, and what the log, the audit and the metrics call it. Clients get the codes that
 * are registered for token endpoints: those of RFC 6749 5.2, `invalid_target` of RFC 8693, and `access_denied` and
 * `slow_down` of RFC 8628. `invalid_grant` is a subject token that is not accepted, which RFC 8693 2.2.2 wants to be
 * answered with `invalid_request`.
 */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
  | 'unsupported_grant_type'
  | 'access_denied'
  | 'slow_down'

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
  // RFC 6749 has no code of token endpoints for a failing server, since there the status says it; these are its words for it.
  if (error.status === 503 || error.status === 504) return 'temporarily_unavailable'
  if (error.status >= 500) return 'server_error'
  if (error.status === 403) return 'access_denied'
  if (error.status === 401) return 'invalid_client'
  return error.status === 429 ? 'slow_down' : 'invalid_request'
}

/** The body of RFC 6749 5.2: texts of the characters that it allows. */
export function oauthErrors(error: GatewayError): { headers: Record<string, string>; body: string } {
  const error_description = error.publicText.replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, '?')
  const code = codeOf(error)
  const body =
    code === 'invalid_grant'
      ? // Sidecars look for "invalid_grant" anywhere in the answer: a fresh subject token may be accepted.
        { error: 'invalid_request', error_description, subject_token_error: code }
      : { error: code, error_description }
  return {
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', pragma: 'no-cache' },
    body: JSON.stringify(body),
  }
}
