import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

export const tokenKey = z.object({
  kid: z.string(),
  algorithm: z.string(),
  state: z.enum(['next', 'active', 'retiring']),
  given: z.boolean().describe('Comes from a file or a secret, whose owner replaces it.'),
  custody: z.string().describe('The service that stores the private part.').optional(),
  created: z.string(),
  visibleSince: z.string().describe('Since when the published documents have it.').optional(),
  activated: z.string().optional(),
  activatesAt: z.string().describe('When the next key may sign, as far as known.').optional(),
  goneAt: z.string().describe('When it is removed from the documents.').optional(),
})
export type TokenKeyView = Wire<typeof tokenKey>

export const tokenIssuer = z.object({
  name: z.string(),
  kind: z.enum(['workloads', 'users']).describe('An endpoint of the token service, or an OpenID Connect issuer.'),
  at: z.string().describe('Where it is configured.'),
  issuer: z.string().describe('Of an OpenID Connect issuer: at the host of the request, or else at its first host.'),
  algorithm: z.string(),
  maxTokenSeconds: z.number().describe('The longest lifetime of a token.'),
  audience: z.string().optional(),
  accepts: z.array(z.string()).describe('Clusters and issuers of workloads; clients of users.'),
  rules: z.int().describe('The number of rules; the grants of teams count as one. Without any, no one gets a token.'),
  keys: z.array(tokenKey).describe('Absent if they cannot be read.').optional(),
  publications: z.array(
    z.object({
      place: z.string(),
      done: z.string().describe('The last success.').optional(),
      failures: z.int().describe('Failed tries since then.'),
      error: z.string().optional(),
      retryAt: z.string().optional(),
    }),
  ),
})
export type TokenIssuerView = Wire<typeof tokenIssuer>

/** GET admin/tokens. Private parts of keys are never in it. */
export const tokenIssuers = z.object({ issuers: z.array(tokenIssuer) })
export type TokenIssuersView = Wire<typeof tokenIssuers>

/** A token with which a SCIM client authenticates; never its text. */
export const scimToken = z.object({
  id: z.string(),
  client: z.string(),
  name: z.string(),
  state: z.enum(['valid', 'expiring', 'expired', 'revoked']),
  created: z.string(),
  createdBy: z.string().describe('The login of the operator.').optional(),
  expires: z.string().describe('Never, if absent.').optional(),
  revoked: z.string().optional(),
  revokedBy: z.string().optional(),
  lastUsed: z.string().describe('Up to a minute before the latest use; absent before the first.').optional(),
})
export type ScimTokenView = Wire<typeof scimToken>

/** GET admin/scim-tokens: by client and name, at most 1,000. */
export const scimTokens = z.object({ tokens: z.array(scimToken) })
export type ScimTokensView = Wire<typeof scimTokens>

/** POST admin/scim-tokens. */
export const createdScimToken = scimToken.extend({
  text: z.string().describe('What the client sends. It is not stored, so no later answer has it.'),
})
export type CreatedScimToken = Wire<typeof createdScimToken>

/** A SCIM gateway with users of its own, which an operator has added. */
export const scimTenant = z.object({
  name: z.string().describe('Also the client that its tokens belong to.'),
  host: z.string(),
  path: z.string(),
  address: z.string().describe('What to enter in the identity provider.'),
  profile: z.string().describe('The client whose habits the gateway follows.'),
  state: z
    .enum(['pending', 'served', 'disabled', 'refused'])
    .describe('In the gateway that answers; `pending` until its configuration has the latest change.'),
  problem: z.string().describe('Why it is not served.').optional(),
  version: z.int(),
  created: z.string(),
  createdBy: z.string().describe('The login of the operator.'),
  disabled: z.string().describe('Since when no caller may pass.').optional(),
  disabledBy: z.string().optional(),
})
export type ScimTenantView = Wire<typeof scimTenant>

/** GET admin/scim-tenants?q=&after=&limit=&format=: by name. */
export const scimTenants = z.object({ tenants: z.array(scimTenant), next: z.string().optional() })

/** GET admin/scim-tenants/{name}. */
export const scimTenantDetails = scimTenant.extend({ users: z.int(), groups: z.int() })
export type ScimTenantDetails = Wire<typeof scimTenantDetails>

/** POST admin/scim-tenants/{name}/remove. */
export const removedScimTenant = z.object({ revokedTokens: z.int() })
export type RemovedScimTenant = Wire<typeof removedScimTenant>
