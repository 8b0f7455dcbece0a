import { readSmallFile } from '#kernel/small-file.ts'
import { type HttpPool, openHttpPool } from '#protocols/http/http-client.ts'
import { ClientToken } from '#protocols/oauth/client-token.ts'
import { type Credentials, ScimConnection } from '#protocols/scim/client/scim-connection.ts'
import { ServiceDiscovery } from '#protocols/scim/client/service-discovery.ts'
import type { ModuleHost } from '#sdk/host.ts'
import type { ScimConfig } from './scim-parameters.ts'
import { ScimPasswordTarget, ScimTarget } from './scim-target.ts'

/** Asks the server what it can do; one that does not answer yet is asked again when it is needed. */
export async function openScimTarget(
  config: ScimConfig,
  host: Pick<ModuleHost, 'name' | 'log' | 'clock'>,
): Promise<ScimTarget> {
  const { authority, timeoutMillis, memberships } = config
  const { name, log, clock } = host
  const http = openHttpPool(authority.file === undefined ? authority.text : await readSmallFile(authority.file))
  const connection = new ScimConnection(http.send, {
    base: config.url,
    name,
    credentials: credentialsOf(config, http, host),
    timeoutMillis,
    clock,
  })
  const discovery = new ServiceDiscovery(connection, clock, log)
  const service = { name, connection, discovery, log, memberships }
  await discovery.features().catch((error: unknown) => {
    log.warn('the SCIM server does not say what it can do; it will be asked again', { err: error })
  })
  const Kind = config.passwords ? ScimPasswordTarget : ScimTarget
  return new Kind(service, clock, () => http.close())
}

function credentialsOf(
  { access, timeoutMillis }: ScimConfig,
  { send }: HttpPool,
  { name, clock }: Pick<ModuleHost, 'name' | 'clock'>,
): Credentials {
  if (access.kind === 'token') return { header: async () => `Bearer ${access.token}`, renew: () => false }
  const token = new ClientToken(send, { ...access, name, clock })
  return {
    header: async () => `Bearer ${await token.get(timeoutMillis)}`,
    renew: () => {
      token.forget()
      return true
    },
  }
}
