import { queryOptions } from '@tanstack/react-query'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type {
  CreatedScimToken,
  RemovedScimTenant,
  ScimTenantDetails,
  ScimTenantView,
  ScimTokensView,
  ScimTokenView,
} from '#features/portal/contract/console-tokens.ts'
import { call } from './call.ts'
import { admin, consolePath } from './console.ts'

/** The tokens of one client, or of all. */
export const tokensQuery = (client?: string) =>
  queryOptions({
    queryKey: ['admin', 'scim-tokens', client],
    queryFn: ({ signal }) => call<ScimTokensView>(admin(consoleRoutes.getScimTokens, {}, { client }), { signal }),
  })

export const createToken = (token: {
  readonly client: string
  readonly name: string
  /** Null: it does not expire. */
  readonly expiresInDays: number | null
}): Promise<CreatedScimToken> => call(admin(consoleRoutes.createScimToken), { body: token })

export const revokeToken = (id: string, reason: string): Promise<ScimTokenView> =>
  call(admin(consoleRoutes.revokeScimToken, { id }), { body: { reason } })

export const tenantQuery = (name: string) =>
  queryOptions({
    queryKey: ['admin', consolePath(consoleRoutes.getScimTenant, { name })],
    queryFn: ({ signal }) => call<ScimTenantDetails>(admin(consoleRoutes.getScimTenant, { name }), { signal }),
  })

export const createTenant = (tenant: {
  readonly name: string
  readonly profile: string
  readonly path?: string
}): Promise<ScimTenantView> => call(admin(consoleRoutes.createScimTenant), { body: tenant })

const changes = { disable: consoleRoutes.disableScimTenant, enable: consoleRoutes.enableScimTenant } as const

/** Changes a tenant that is still as the page shows it. */
export const changeTenant = (
  { name, version }: ScimTenantView,
  change: keyof typeof changes,
  reason: string,
): Promise<ScimTenantView> => call(admin(changes[change], { name }), { body: { version, reason } })

export const removeTenant = ({ name, version }: ScimTenantView, reason: string): Promise<RemovedScimTenant> =>
  call(admin(consoleRoutes.removeScimTenant, { name }), { body: { version, reason } })
