import * as z from 'zod'
import type { IssuerHost } from '#features/issuer/host.ts'
import { DescribedApi, keySetSchema, placeAtMount } from '#sdk/api/api-description.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import { htmlErrors } from '#sdk/page/page.ts'

/** Answers at the URL of an `idp`; such a URL has this filter implicitly. */
export default defineFilter({
  className: 'filters.Issuer',
  ...withParameters({
    issuer: text({
      about: 'The name of the identity provider: what follows `/auth/idp/` in its uri.',
      required: true,
      reference: 'identity provider',
    }),
  }),
  answers: true,
  errors: htmlErrors,
  takesForms: true,
  summarize: ({ issuer }) => [{ label: 'identity provider', value: issuer }],
  api: () => issuerApi.served(placeAtMount, { hasOwnCredentials: true }),
  create: ({ issuer }, { issuers }: IssuerHost) => {
    if (issuers === undefined) throw new Error('no identity provider is configured')
    return { handle: (exchange) => issuers.handle(issuer, exchange) }
  },
})

const form = 'application/x-www-form-urlencoded'
const tokenForm = z.object({ token: z.string(), token_type_hint: z.string().optional() })
const clientSecret = 'Clients with a secret authenticate by HTTP Basic, or by client_id and client_secret in the form.'

/** The endpoints that every issuer has; the discovery document also names those of the configured grants. */
export const issuerApi = new DescribedApi({
  title: 'OpenID Connect issuer',
  version: '1.0',
  answers: {
    Discovery: z.looseObject({ issuer: z.string(), authorization_endpoint: z.string(), token_endpoint: z.string() }),
    KeySet: keySetSchema,
    Tokens: z.object({
      access_token: z.string(),
      token_type: z.string(),
      expires_in: z.int(),
      id_token: z.string().optional(),
      refresh_token: z.string().optional(),
      scope: z.string().optional(),
      issued_token_type: z.string().describe('Of a token exchange').optional(),
    }),
    Claims: z.looseObject({ sub: z.string() }),
    Introspection: z.looseObject({ active: z.boolean() }),
    OAuthError: z.object({ error: z.string(), error_description: z.string().optional() }),
  },
  bodies: {
    TokenRequest: z.object({
      grant_type: z.string().meta({ examples: ['authorization_code', 'refresh_token'] }),
      code: z.string().optional(),
      redirect_uri: z.string().optional(),
      code_verifier: z.string().describe('PKCE (RFC 7636)').optional(),
      refresh_token: z.string().optional(),
      client_id: z.string().optional(),
      subject_token: z.string().describe('Token exchange (RFC 8693), if a client of the issuer offers it').optional(),
      subject_token_type: z.string().optional(),
      actor_token: z.string().describe('Of the party that acts for the user').optional(),
      actor_token_type: z.string().optional(),
      audience: z.string().describe('The client that the new token is for').optional(),
      requested_token_type: z.string().optional(),
    }),
    TokenForm: tokenForm,
  },
  failure: { description: 'What is wrong', schema: 'OAuthError' },
  operations: {
    getDiscovery: {
      route: 'GET /.well-known/openid-configuration',
      summary: 'The discovery document',
      answer: 'Discovery',
    },
    getKeys: {
      route: 'GET /certs',
      summary: 'The public keys that tokens are signed with',
      answers: { '200': { description: 'Success', schema: 'KeySet', type: 'application/jwk-set+json' } },
    },
    authorize: {
      route: 'GET /auth',
      summary: 'Signs a user in, by a browser',
      query: {
        response_type: '"code"',
        client_id: 'The client',
        redirect_uri: 'Where the browser goes afterwards, as configured for the client',
        scope: '"openid" and others, separated by spaces',
        state: 'Returned as it is',
        nonce: 'Becomes a claim of the id_token',
        code_challenge: 'PKCE (RFC 7636); required for clients without a secret',
        code_challenge_method: '"S256"',
      },
      requiredQuery: ['response_type', 'client_id', 'scope'],
      answers: {
        '303': { description: 'To the login, or back to the client' },
        '400': { description: 'A page that says what is wrong', type: 'text/html' },
      },
    },
    getTokens: {
      route: 'POST /token',
      summary: 'Exchanges a code, a refresh token or the token of a user for tokens',
      description: clientSecret,
      body: 'TokenRequest',
      bodyType: form,
      answer: 'Tokens',
    },
    getUserInfo: { route: 'GET /userinfo', summary: 'The claims of the user of an access token', answer: 'Claims' },
    introspect: {
      route: 'POST /introspect',
      summary: 'Whether a token is valid (RFC 7662)',
      description: clientSecret,
      body: 'TokenForm',
      bodyType: form,
      answer: 'Introspection',
    },
    revoke: {
      route: 'POST /revoke',
      summary: 'Revokes a token (RFC 7009)',
      description: clientSecret,
      body: 'TokenForm',
      bodyType: form,
      answers: { '200': { description: 'Revoked' } },
    },
  },
})
