import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { issuerIdentity } from '#identity/identity.ts'
import { bearerRefusals, readBearer } from '#protocols/jwt/bearer.ts'
import { type AuthHost, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { list, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { ClientTokens } from './client-tokens.ts'

/** What the mechanism uses beside what every mechanism may use. */
export interface ClientTokenHost extends AuthHost {
  readonly clientTokens: Pick<ClientTokens, 'verify'>
}

const parameters = {
  client: list({
    about:
      'The clients whose tokens are accepted; may be repeated. All but those of tenants that operators add when absent, so that the rules of the URL decide; a list without a client is an error.',
  }),
  realm: text({ about: 'The realm named in `WWW-Authenticate`.', fallback: 'scim' }),
}

/** A token that an administrator created for a SCIM client, with an expiry, and which can be revoked without a restart. */
export default defineAuthMechanism({
  className: 'auth.ScimToken',
  parameters,
  parse: (params, issues, context) => {
    const { client, realm } = readParameters(parameters, params, issues, context)
    if (client.length === 0 && Array.from(params.names()).includes('client')) {
      const remedy = 'name one, or remove the parameter to accept the tokens of all clients of the configuration'
      issues.error(params.pathOf('client'), `"client" names no client: ${remedy}`)
    }
    return { clients: client.length === 0 ? undefined : new Set(client), realm }
  },
  callers: () => 'programs',
  clients: ({ clients = [] }) => [...clients],
  create: ({ clients, realm }, { clientTokens }: ClientTokenHost) => {
    const refusals = bearerRefusals(realm, undefined)
    return {
      async begin({ request, root }) {
        const bearer = readBearer(request.headers)
        if (bearer.kind === 'none') return refusals.noToken
        if (bearer.kind === 'malformed') return refusals.badHeader(bearer.reason)
        const token = await clientTokens.verify(bearer.token)
        // An operator of the console decides about the tokens of a tenant, and not about the rest of the configuration.
        const isAccepted = token !== undefined && (clients?.has(token.client) ?? !token.isOfTenant)
        if (!isAccepted) {
          const reason = token === undefined ? 'the token is unknown, expired or revoked' : `it is of ${token.client}`
          return refusals.badToken(reason, 'The token is not accepted')
        }
        const { client: uid } = token
        const dn = Dn.parse(root).child('ou', 'tokens').child('uid', uid)
        const attributes = Attributes.from({ uid: [uid], objectClass: ['inetOrgPerson'] })
        return {
          kind: 'authenticated',
          subject: { dn, identity: issuerIdentity('auth.ScimToken', uid), uid, attributes },
        }
      },
    }
  },
})
