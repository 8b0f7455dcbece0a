import { parseTrustedUrl } from '#kernel/address.ts'
import type { Issues } from '#kernel/issues.ts'
import { type ClientProof, readClientKey } from '#protocols/oauth/client-token.ts'
import { authorityParameters, readAuthority } from '#sdk/module/authority.ts'
import { choice, flag, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import {
  type ParameterReport,
  type ParameterTable,
  type ParsedParameters,
  parameterReport,
  readParameters,
} from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { defineTarget } from '#sdk/target-module/target-module.ts'
import { profileNames, scimProfiles } from './profiles.ts'
import type { ScimConfig } from './scim-target.ts'

function bearerToken(value: string): string {
  if (/^[\x21-\x7e]{1,16384}$/.test(value)) return value
  throw new Error('must be visible ASCII characters')
}

function serviceUrl(value: string): URL {
  const url = parseTrustedUrl(value)
  if (url.search !== '' || url.hash !== '') throw new Error('must not hold a query or a fragment')
  return url
}

const parameters = {
  url: parsed('https address', serviceUrl, {
    about: 'The address of the service, above `/Users`: `https:`, or `http:` on this machine only.',
    required: true,
  }),
  token: parsed('token', bearerToken, {
    about: 'The bearer token to call it with.',
    requirement: '`token` or `tokenUrl`',
    secret: true,
  }),
  tokenUrl: parsed('https address', parseTrustedUrl, {
    about:
      'The endpoint that issues access tokens by OAuth 2 client credentials, in place of `token`. A token is kept until shortly before it expires.',
    requirement: '`token` or `tokenUrl`',
  }),
  clientId: text({ about: 'The client id of Gatehouse there.', requirement: 'with `tokenUrl`' }),
  clientSecret: text({
    about: 'The secret of the client.',
    requirement: 'with `tokenUrl`, or `clientKey`',
    secret: true,
  }),
  clientSecretIn: choice(['header', 'body'], {
    about: '`header`: the secret is sent as HTTP Basic; `body`: in the form.',
    fallback: 'header',
  }),
  clientKey: text({
    about:
      'A private key as PEM text (RSA, EC or Ed25519) by which the client proves itself (`private_key_jwt`), in place of a secret.',
    requirement: 'with `tokenUrl`, or `clientSecret`',
    secret: true,
  }),
  clientKeyId: text({ about: 'The `kid` by which the server finds the public key.' }),
  scope: text({ about: 'The scope to request.' }),
  audience: text({ about: 'The `audience` to request, if the server needs one.' }),
  ...authorityParameters,
  profile: choice(profileNames, {
    about: 'The [application](#applications) behind the API, if it does other things than it says.',
    fallback: undefined,
  }),
  memberships: choice(['user', 'group'], {
    about:
      "Where a user's groups are read: `user`, in `groups` of the user; `group`, by a search of the groups, for servers whose users do not list them.",
    fallback: 'user',
  }),
  missingGroups: choice(['refuse', 'create'], {
    about:
      'What happens when a user joins a group that does not exist: the change is refused, or the group is created.',
    fallback: 'refuse',
  }),
  passwords: flag({ about: 'Whether the server accepts passwords.' }),
  timeoutMillis: wholeNumber({
    about: 'How long a call may take, with what is tried again, in milliseconds.',
    fallback: 10_000,
    min: 100,
    max: 120_000,
  }),
} satisfies ParameterTable

type Given = ParsedParameters<typeof parameters>

const nowhere = new URL('https://scim.invalid')

export function parseScim(params: Params, issues: Issues, context: ParseContext): ScimConfig {
  const given = readParameters(parameters, params, issues, context)
  const { profile, memberships, missingGroups, passwords, timeoutMillis } = given
  if (profile !== undefined && scimProfiles[profile].groups === 'none') {
    const { refuse } = parameterReport(params, issues)
    const reason = `is for groups, and ${scimProfiles[profile].title} has none`
    if (memberships === 'group') refuse('memberships', reason)
    if (missingGroups === 'create') refuse('missingGroups', reason)
  }
  return {
    url: given.url ?? nowhere,
    access: readAccess(given, parameterReport(params, issues)),
    authority: readAuthority(given, params, issues, context),
    profile,
    memberships,
    missingGroups,
    passwords,
    timeoutMillis,
  }
}

const ofClients = [
  'clientId',
  'clientSecret',
  'clientSecretIn',
  'clientKey',
  'clientKeyId',
  'scope',
  'audience',
] as const

function readAccess(given: Given, report: ParameterReport): ScimConfig['access'] {
  const { isSet, error, refuse } = report
  if (!isSet('tokenUrl')) {
    for (const name of ofClients) refuse(name, 'belongs to "tokenUrl"')
    if (!isSet('token')) error('token', 'one of "token" and "tokenUrl" is required')
    return { kind: 'token', token: given.token ?? '' }
  }
  refuse('token', 'cannot be given beside "tokenUrl"')
  if (!isSet('clientId')) error('clientId', '"clientId" is required with "tokenUrl"')
  if (!isSet('clientSecret') && !isSet('clientKey')) {
    error('clientSecret', 'one of "clientSecret" and "clientKey" is required with "tokenUrl"')
  }
  if (isSet('clientSecret')) refuse('clientKey', 'cannot be given beside "clientSecret"')
  if (!isSet('clientKey')) refuse('clientKeyId', 'belongs to "clientKey"')
  return {
    kind: 'client',
    tokenUrl: given.tokenUrl ?? nowhere,
    clientId: given.clientId ?? '',
    proof: readProof(given, report),
    scope: given.scope,
    audience: given.audience,
  }
}

function readProof(
  { clientKey, clientKeyId, clientSecret, clientSecretIn }: Given,
  report: ParameterReport,
): ClientProof {
  const bySecret = { kind: clientSecretIn === 'header' ? 'basic' : 'post', secret: clientSecret ?? '' } as const
  if (clientKey === undefined) return bySecret
  try {
    return { kind: 'key', key: readClientKey(clientKey, clientKeyId) }
  } catch (error) {
    report.error('clientKey', `"clientKey": ${error instanceof Error ? error.message : String(error)}`)
    return bySecret
  }
}

/** Users and groups of another SCIM 2.0 server. */
export default defineTarget<ScimConfig>({
  className: 'targets.Scim',
  parameters,
  parse: parseScim,
  passwords: ({ passwords }) => passwords,
  /** Loaded on first use: a gateway without such a target is smaller and starts sooner. */
  create: async (config, host) => (await import('./scim-target.ts')).openScimTarget(config, host),
})
