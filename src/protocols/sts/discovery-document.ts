import { tokenExchangeGrant } from '#protocols/sts/token-exchange.ts'

interface DiscoveryContent {
  /** Without a trailing slash. */
  readonly issuer: string
  readonly algorithms: readonly string[]
  /** Claims of the tokens besides those that all of them have. */
  readonly claims: readonly string[]
}

const everyTokenHas = ['sub', 'aud', 'iss', 'exp', 'cluster', 'namespace', 'saname']

/** The paths of the documents below the issuer. */
export const discoveryPath = '/.well-known/openid-configuration'
export const keysPath = '/certs'

/**
 * The OpenID Connect discovery document of an issuer of workload tokens. Consumers read `issuer`, `jwks_uri` and
 * the algorithms. `token_endpoint` answers token exchange if the gateway serves the issuer's host. The other fields
 * are those that existing consumers were set up with; no one logs in here, so the URLs of the interactive flows
 * have no handler.
 */
export function discoveryDocument({ issuer, algorithms, claims }: DiscoveryContent): Readonly<Record<string, unknown>> {
  return {
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    revocation_endpoint: `${issuer}/revoke`,
    jwks_uri: `${issuer}${keysPath}`,
    // This issuer only issues ID tokens, so it lists none of the combinations of the interactive flows.
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...new Set(algorithms)],
    grant_types_supported: [tokenExchangeGrant],
    scopes_supported: ['openid', 'email', 'profile'],
    token_endpoint_auth_methods_supported: ['client_secret_post'],
    claims_supported: [...new Set([...everyTokenHas, ...claims])],
    code_challenge_methods_supported: ['plain', 'S256'],
  }
}

/** Headers of a response, by their names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** What a reader assumes if the response has no cache lifetime. */
export const unknownLifetimeSeconds = 3600
/** The longest wait, so that a nonsensical header does not stop rotation forever. */
const mostSeconds = 30 * 24 * 3600

/**
 * For how many seconds a reader may still use this response after it was replaced at its origin: the reader's own
 * cache lifetime, and that of caches on the way. `cdnSeconds` is what is otherwise known of such caches.
 */
export function cacheLifetime(headers: AnswerHeaders, cdnSeconds?: number): number {
  const directives = readDirectives(textOf(headers['cache-control']))
  const forReaders = readersLifetime(headers, directives)
  const shared = directives.get('s-maxage') ?? forReaders
  const onTheWay = cdnSeconds ?? (passedCache(headers) ? shared : 0)
  return Math.min(forReaders + onTheWay + staleSeconds(directives), mostSeconds)
}

function readersLifetime(headers: AnswerHeaders, directives: ReadonlyMap<string, number>): number {
  if (directives.has('no-store') || directives.has('no-cache')) return 0
  const maxAge = directives.get('max-age')
  if (maxAge !== undefined) return maxAge
  const [expires, date] = ['expires', 'date'].map((name) => Date.parse(textOf(headers[name])))
  const seconds = ((expires ?? Number.NaN) - (date ?? Number.NaN)) / 1000
  return Number.isFinite(seconds) ? Math.max(0, Math.ceil(seconds)) : unknownLifetimeSeconds
}

/** RFC 5861 lets a cache serve an expired response. */
const staleSeconds = (directives: ReadonlyMap<string, number>): number =>
  Math.max(directives.get('stale-while-revalidate') ?? 0, directives.get('stale-if-error') ?? 0)

const passedCache = (headers: AnswerHeaders): boolean =>
  ['age', 'x-cache', 'cf-cache-status', 'x-served-by', 'x-varnish'].some((name) => headers[name] !== undefined)

/** A lifetime that is not a number counts as absent. */
function readDirectives(text: string): ReadonlyMap<string, number> {
  const directives = new Map<string, number>()
  for (const part of text.slice(0, 1024).split(',')) {
    const [name = '', value] = part.split('=', 2).map((piece) => piece.trim().toLowerCase())
    const digits = value?.replace(/^"(.*)"$/, '$1') ?? ''
    if (/^\d{1,10}$/.test(digits)) directives.set(name, Math.max(directives.get(name) ?? 0, Number(digits)))
    else if (value === undefined && (name === 'no-store' || name === 'no-cache')) directives.set(name, 0)
  }
  return directives
}

const textOf = (value: string | readonly string[] | undefined): string =>
  typeof value === 'string' ? value : (value ?? []).join(',')
