import { oauthRefusal } from '#protocols/sts/oauth-errors.ts'

export const tokenExchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const jwtTokenType = 'urn:ietf:params:oauth:token-type:jwt'
const idTokenType = 'urn:ietf:params:oauth:token-type:id_token'
const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'

/** A service-account token is a JWT, and cluster and client may call it either of the others. */
const subjectTypes: ReadonlySet<string> = new Set([jwtTokenType, idTokenType, accessTokenType])
const requestedTypes: ReadonlySet<string> = new Set([jwtTokenType, idTokenType])

/** The longest form that is read: a token of 16 KiB, and what goes with it. */
export const longestForm = 32 * 1024
/** Longer tokens are refused unread. */
export const longestSubjectToken = 16 * 1024
const mostParameters = 32

/** RFC 8693 2.1 lets these repeat, and no other. */
const repeatable: ReadonlySet<string> = new Set(['audience', 'resource'])
const known: ReadonlySet<string> = new Set([
  'grant_type',
  'subject_token',
  'subject_token_type',
  'requested_token_type',
  'scope',
  ...repeatable,
])
const unsupported: ReadonlySet<string> = new Set(['actor_token', 'actor_token_type'])

const formContent = /^application\/x-www-form-urlencoded\s*(?:;\s*charset=utf-8\s*)?$/i

/**
 * The subject token of a token-exchange request (RFC 8693 2.1) to an endpoint that issues for one audience. Throws
 * `invalid_request`, `unsupported_grant_type`, `invalid_scope` or `invalid_target` as OAuth errors.
 */
export function readTokenExchange(contentType: string | undefined, body: Buffer, audience: string): string {
  if (!formContent.test(contentType ?? '')) {
    throw oauthRefusal('invalid_request', 'The request must be a form, application/x-www-form-urlencoded.')
  }
  const form = readForm(body)
  const only = (name: string): string | undefined => form.get(name)?.[0]
  const grant = only('grant_type')
  if (grant === undefined) throw missing('grant_type')
  if (grant !== tokenExchangeGrant) {
    throw oauthRefusal('unsupported_grant_type', `The only grant_type is ${tokenExchangeGrant}.`)
  }
  const token = only('subject_token')
  if (token === undefined || token === '') throw missing('subject_token')
  const type = only('subject_token_type')
  if (type === undefined) throw missing('subject_token_type')
  if (!subjectTypes.has(type)) throw oauthRefusal('invalid_request', `The subject_token_type must be ${jwtTokenType}.`)
  const requested = only('requested_token_type')
  if (requested !== undefined && !requestedTypes.has(requested)) {
    throw oauthRefusal('invalid_request', `The requested_token_type must be ${jwtTokenType}.`)
  }
  if ((only('scope') ?? '') !== '') throw oauthRefusal('invalid_scope', 'Tokens of this endpoint have no scope.')
  for (const target of [...(form.get('audience') ?? []), ...(form.get('resource') ?? [])]) {
    if (target !== audience) {
      throw oauthRefusal('invalid_target', 'This endpoint issues no tokens for that audience or resource.')
    }
  }
  return token
}

function readForm(body: Buffer): ReadonlyMap<string, readonly string[]> {
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
    if (unsupported.has(name)) throw oauthRefusal('invalid_request', `The parameter ${name} is not supported.`)
    if (!known.has(name)) {
      throw oauthRefusal('invalid_request', 'The form has a parameter that token exchange does not know.')
    }
    const values = form.get(name)
    if (values === undefined) form.set(name, [value])
    else if (repeatable.has(name)) values.push(value)
    else throw oauthRefusal('invalid_request', `The parameter ${name} is given twice.`)
  }
  return form
}

const missing = (name: string) => oauthRefusal('invalid_request', `The parameter ${name} is required.`)

export interface ExchangedToken {
  readonly token: string
  readonly expiresInSeconds: number
}

/** The answer of RFC 8693 2.2.1. The token is not for this service's own resources, so it has no token type. */
export const tokenExchangeAnswer = ({ token, expiresInSeconds }: ExchangedToken): string =>
  JSON.stringify({
    access_token: token,
    issued_token_type: jwtTokenType,
    token_type: 'N_A',
    expires_in: expiresInSeconds,
  })
