/** The content of the Authorization header. Schemes other than Bearer are ignored. */
type BearerCredential =
  | { readonly kind: 'none' }
  | { readonly kind: 'malformed'; readonly reason: string }
  | { readonly kind: 'token'; readonly token: string }

const none: BearerCredential = { kind: 'none' }
const credential = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) +(.*)$/
const token68 = /^[A-Za-z0-9._~+/-]+=*$/

const bareJwt = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/**
 * The bearer token of a request (RFC 6750 2.1). It is read from the header only, never from the query or the body. With
 * `bare`, a JWT without a scheme is one too, as kubectl's plug-in for OpenUnison sends it.
 */
export function readBearer(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  { bare = false }: { readonly bare?: boolean } = {},
): BearerCredential {
  const given = headers['authorization']
  if (given === undefined) return none
  if (Array.isArray(given) && given.length > 1) return { kind: 'malformed', reason: 'several Authorization headers' }
  if (bare && bareJwt.test(String(given))) return { kind: 'token', token: String(given) }
  const [, scheme = '', token = ''] = credential.exec(String(given)) ?? []
  if (scheme.toLowerCase() !== 'bearer') return none
  if (!token68.test(token)) return { kind: 'malformed', reason: 'the bearer token holds characters that none may have' }
  return { kind: 'token', token }
}

interface Challenge {
  readonly realm: string
  readonly scope?: string | undefined
  readonly error?: 'invalid_request' | 'invalid_token'
  readonly description?: string
}

/** The WWW-Authenticate header for a refusal (RFC 6750 3). */
export function bearerChallenge(challenge: Challenge): { readonly 'www-authenticate': string } {
  const attributes = [
    ['realm', challenge.realm],
    ['scope', challenge.scope],
    ['error', challenge.error],
    ['error_description', challenge.description],
  ].flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${quoted(value)}`]))
  return { 'www-authenticate': `Bearer ${attributes.join(', ')}` }
}

interface Refusal {
  readonly kind: 'rejected'
  /** For the log. */
  readonly reason: string
  readonly headers: Readonly<Record<string, string>>
  readonly noCredential?: true
}

/** The refusals of one protected resource. Descriptions are sent; they contain nothing of the token. */
export function bearerRefusals(realm: string, scope: string | undefined) {
  const refuse = (reason: string, challenge: Omit<Challenge, 'realm' | 'scope'>): Refusal => ({
    kind: 'rejected',
    reason,
    headers: bearerChallenge({ realm, scope, ...challenge }),
  })
  return {
    noToken: { ...refuse('no bearer token was sent', {}), noCredential: true } satisfies Refusal,
    badHeader: (reason: string) =>
      refuse(reason, { error: 'invalid_request', description: 'The Authorization header is malformed' }),
    badToken: (reason: string, description: string) => refuse(reason, { error: 'invalid_token', description }),
  }
}

/** A quoted-string of RFC 9110 5.6.4; replaces characters that are not allowed in a header. */
function quoted(text: string): string {
  return `"${text.replace(/[^\t\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`
}
