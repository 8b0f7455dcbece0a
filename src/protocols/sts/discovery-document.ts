import { tokenExchangeGrant } from '#protocols/sts/token-exchange.ts'

export interface DiscoveryContent {
  /** Without a slash at the end. */
  readonly issuer: string
  readonly algorithms: readonly string[]
  /** Claims of the tokens beyond those that all of them have. */
  readonly claims: readonly string[]
}

const everyTokenHas = ['sub', 'aud', 'iss', 'exp', 'cluster', 'namespace', 'saname']

/** Where the documents stand below the issuer. */
export const discoveryPath = '/.well-known/openid-configuration'
export const keysPath = '/certs'

/**
 * The OpenID Connect discovery document of an issuer of workload tokens. Consumers read `issuer`, `jwks_uri` and the
 * algorithms. Token exchange is answered at `token_endpoint` where the gateway serves the issuer's host. The other fields
 * are those that existing consumers were set up with; no one logs in here, so nothing answers at the addresses of the
 * interactive flows.
 */
export function discoveryDocument({ issuer, algorithms, claims }: DiscoveryContent): Readonly<Record<string, unknown>> {
  return {
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    revocation_endpoint: `${issuer}/revoke`,
    jwks_uri: `${issuer}${keysPath}`,
    // All that this issuer gives is an ID token, so it lists none of the combinations of the interactive flows.
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
