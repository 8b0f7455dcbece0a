import { GatewayError, type GatewayErrorOptions } from '#kernel/errors.ts'

export const tokenExchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const jwtTokenType = 'urn:ietf:params:oauth:token-type:jwt'
const idTokenType = 'urn:ietf:params:oauth:token-type:id_token'
const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'

/** The subject token and the issued token are JWTs, and clients may use any of these types for them. */
const tokenTypes: ReadonlySet<string> = new Set([jwtTokenType, idTokenType, accessTokenType])

/** The longest form that is read: a token of 16 KiB, and the other parameters. */
export const longestForm = 32 * 1024
/** Longer tokens are rejected unread. */
export const longestSubjectToken = 16 * 1024
const mostParameters = 32

/** RFC 8693 2.1 lets the first two repeat, and no other. */
const repeatable = ['audience', 'resource'] as const
const single = [
  'grant_type',
  'subject_token',
  'subject_token_type',
  'requested_token_type',
  'scope',
  'actor_token',
  'actor_token_type',
] as const
/** Read only where clients authenticate. */
const ofClient = ['client_id', 'client_secret'] as const
const ofWorkload: ReadonlySet<string> = new Set([...repeatable, ...single])
const ofUser: ReadonlySet<string> = new Set([...ofWorkload, ...ofClient])
const repeats: ReadonlySet<string> = new Set(repeatable)

const formContent = /^application\/x-www-form-urlencoded\s*(?:;\s*charset=utf-8\s*)?$/i

interface TokenExchange {
  readonly subjectToken: string
  /** The requested type of the token. */
  readonly requestedType: string
}

/** An exchange of a user's token by a client. */
interface UserTokenExchange extends TokenExchange {
  readonly audience: string
  /** Present for a delegation: the token of the party that acts for the user. */
  readonly actorToken: string | undefined
  readonly clientId: string | undefined
  readonly clientSecret: string | undefined
}

/**
 * A token-exchange request (RFC 8693 2.1) to an endpoint that issues for one audience. Throws `invalid_request`,
 * `unsupported_grant_type`, `invalid_scope` or `invalid_target` as OAuth errors. Parameters that are unknown, or have no
 * value, count as absent (RFC 6749 3.2); so do client credentials, since the subject token alone decides.
 */
export function readTokenExchange(contentType: string | undefined, body: Buffer, audience: string): TokenExchange {
  const { only, all, exchange } = readExchange(contentType, body, jwtTokenType, ofWorkload)
  // RFC 8693 defines them, but they are not supported; ignoring them would issue something else than requested.
  for (const name of ['actor_token', 'actor_token_type'] as const) {
    if (only(name) !== undefined) throw oauthRefusal('invalid_request', `The parameter ${name} is not supported.`)
  }
  for (const target of repeatable.flatMap(all)) {
    if (target !== audience) {
      throw oauthRefusal('invalid_target', 'This endpoint issues no tokens for that audience or resource.')
    }
  }
  return exchange
}

/** The same to an endpoint for several audiences, of which the client must name one. */
export function readUserTokenExchange(contentType: string | undefined, body: Buffer): UserTokenExchange {
  const { only, all, exchange } = readExchange(contentType, body, accessTokenType, ofUser)
  const actorToken = only('actor_token')
  const actorType = only('actor_token_type')
  if (actorToken !== undefined && actorType === undefined) throw missing('actor_token_type')
  if (actorToken === undefined && actorType !== undefined) throw missing('actor_token')
  if (actorType !== undefined && !tokenTypes.has(actorType)) {
    throw oauthRefusal('invalid_request', `The actor_token_type must be ${idTokenType}.`)
  }
  if (all('resource').length > 0) throw oauthRefusal('invalid_target', 'Name an audience instead of a resource.')
  const [audience, another] = all('audience')
  if (audience === undefined) throw missing('audience')
  if (another !== undefined) throw oauthRefusal('invalid_target', 'A token is issued for one audience only.')
  return { ...exchange, audience, actorToken, clientId: only('client_id'), clientSecret: only('client_secret') }
}

type SingleName = (typeof single)[number] | (typeof ofClient)[number]

interface ReadExchange {
  readonly exchange: TokenExchange
  only(name: SingleName): string | undefined
  all(name: (typeof repeatable)[number]): readonly string[]
}

function readExchange(
  contentType: string | undefined,
  body: Buffer,
  defaultType: string,
  fields: ReadonlySet<string>,
): ReadExchange {
  if (!formContent.test(contentType ?? '')) {
    throw oauthRefusal('invalid_request', 'The request must be a form, application/x-www-form-urlencoded.')
  }
  const form = readForm(body, fields)
  const only = (name: SingleName): string | undefined => form.get(name)?.[0]
  const grant = only('grant_type')
  if (grant === undefined) throw missing('grant_type')
  if (grant !== tokenExchangeGrant) {
    throw oauthRefusal('unsupported_grant_type', `The only grant_type is ${tokenExchangeGrant}.`)
  }
  const subjectToken = only('subject_token')
  if (subjectToken === undefined) throw missing('subject_token')
  const type = only('subject_token_type')
  if (type === undefined) throw missing('subject_token_type')
  if (!tokenTypes.has(type)) throw oauthRefusal('invalid_request', `The subject_token_type must be ${jwtTokenType}.`)
  const requestedType = only('requested_token_type') ?? defaultType
  if (!tokenTypes.has(requestedType)) {
    throw oauthRefusal('invalid_request', `The requested_token_type must be ${jwtTokenType}.`)
  }
  if (only('scope') !== undefined) throw oauthRefusal('invalid_scope', 'Tokens of this endpoint have no scope.')
  return { exchange: { subjectToken, requestedType }, only, all: (name) => form.get(name) ?? [] }
}

function readForm(body: Buffer, read: ReadonlySet<string>): ReadonlyMap<string, readonly string[]> {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch (cause) {
    throw oauthRefusal('invalid_request', 'The form is not UTF-8.', undefined, { cause })
  }
  const form = new Map<string, string[]>()
  let count = 0
  for (const [name, value] of new URLSearchParams(text)) {
    if (++count > mostParameters) throw oauthRefusal('invalid_request', 'The form has too many parameters.')
    if (value === '' || !read.has(name)) continue
    const values = form.get(name)
    if (values === undefined) form.set(name, [value])
    else if (repeats.has(name)) values.push(value)
    else throw oauthRefusal('invalid_request', `The parameter ${name} is given twice.`)
  }
  return form
}

const missing = (name: string) => oauthRefusal('invalid_request', `The parameter ${name} is required.`)

interface ExchangedToken {
  readonly token: string
  readonly expiresInSeconds: number
  /** Clients of OpenUnison read it; RFC 8693 has the token in `access_token`, whatever its type. */
  readonly idToken?: string
}

/**
 * The response of RFC 8693 2.2.1. The token is not for this service's own resources, so it has no token type,
 * unless the client requests an access token, which it uses as a bearer token at the audience.
 */
export const tokenExchangeAnswer = ({ token, expiresInSeconds, idToken }: ExchangedToken, type: string): string =>
  JSON.stringify({
    access_token: token,
    issued_token_type: type,
    token_type: type === accessTokenType ? 'Bearer' : 'N_A',
    expires_in: expiresInSeconds,
    id_token: idToken,
  })

/**
 * The refusals of the token endpoint, and their names in the log, the audit and the metrics. Clients get the codes
 * that are registered for token endpoints: those of RFC 6749 5.2, `invalid_target` of RFC 8693, and `access_denied`
 * and `slow_down` of RFC 8628. `invalid_grant` is a subject token that is not accepted, for which RFC 8693 2.2.2
 * requires `invalid_request`.
 */
type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'unauthorized_client'
  | 'invalid_target'
  | 'unsupported_grant_type'
  | 'access_denied'
  | 'slow_down'

/** A refusal with status 400. `description` is sent, so it contains nothing of a token; `detail` is for the log. */
export const oauthRefusal = (
  code: OAuthErrorCode,
  description: string,
  detail: string = description,
  options: GatewayErrorOptions = {},
): GatewayError => new GatewayError('BAD_REQUEST', detail, { ...options, publicText: description, keyword: code })

/** The code for an error without its own. */
function codeOf(error: GatewayError): string {
  if (error.keyword !== undefined) return error.keyword
  // RFC 6749 has no token endpoint code for a failing server, where the status is enough; these are its codes for
  // other endpoints.
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
      ? // Sidecars look for "invalid_grant" anywhere in the response: a fresh subject token may be accepted.
        { error: 'invalid_request', error_description, subject_token_error: code }
      : { error: code, error_description }
  return {
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', pragma: 'no-cache' },
    body: JSON.stringify(body),
  }
}
