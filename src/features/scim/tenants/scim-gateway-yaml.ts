import type { ClientName } from '#features/scim/contract/client-names.ts'
import { fillTemplate } from '#kernel/text/fill-template.ts'

interface GatewayValues {
  /** Part of the name of each object. */
  readonly name: string
  readonly host: string
  readonly path: string
  readonly profile: ClientName
  /** Where the tokens of its client are: in the database, or in the Secret `scim-NAME`. */
  readonly tokens: 'database' | 'secret'
  /** The directory of its users in the database, if that is not the name of the target. */
  readonly directory?: string
  /** No caller may pass. */
  readonly isDisabled?: boolean
}

/** The objects of a SCIM gateway with users of its own. */
export function scimGatewayYaml({ tokens, directory, isDisabled = false, ...values }: GatewayValues): string {
  const { name } = values
  const inDatabase = tokens === 'database'
  return fillTemplate(new URL('./scim-gateway.yaml', import.meta.url), {
    ...values,
    mechanism: inDatabase ? 'auth.ScimToken' : 'auth.BearerToken',
    caller: inDatabase ? 'client' : 'userName',
    secret: inDatabase
      ? ['secretParams: []']
      : ['secretParams:', '  - name: token', `    secretName: scim-${name}`, '    secretKey: token'],
    // A caller's name never has the second organizational unit.
    callers: isDisabled ? 'disabled' : 'tokens',
    directory: [
      ...(directory === undefined ? ['params: []'] : ['params:', '  - name: directory', `    value: ${directory}`]),
      // Users of tenants are not found by the logins and rules of others.
      ...(inDatabase ? ['inDirectory: false'] : []),
    ],
  })
}
