import { Dn } from '#identity/dn.ts'
import type { Issues } from '#kernel/issues.ts'
import { type Authority, authorityParameters, readAuthority } from '#sdk/module/authority.ts'
import { choice, flag, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, type ParsedParameters, parameterReport } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

/** The connection parameters that the LDAP target and the LDAP insert share. */
export const ldapConnectionParameters = {
  url: parsed('ldap or ldaps address', parseLdapUrl, {
    about: '`ldap://host:389` or `ldaps://host:636`; in place of `host`, `port` and `useSSL`.',
    requirement: 'this or `host`',
  }),
  host: text({ about: 'The server’s name or address.', requirement: 'this or `url`' }),
  port: wholeNumber({
    about: 'Its port; 389, or 636 with `useSSL`, when absent.',
    requirement: 'no',
    fallback: 0,
    min: 1,
    max: 65_535,
  }),
  useSSL: flag({ about: 'Connects with TLS (LDAPS).' }),
  startTls: flag({ about: 'Encrypts an `ldap://` connection with StartTLS first.' }),
  ...authorityParameters,
  adminDN: parsed('distinguished name', (value) => Dn.parse(value).toString(), {
    about: 'The DN with which Gatehouse binds; anonymous when absent.',
  }),
  adminPasswd: text({ about: 'The password of `adminDN`.', secret: true }),
  maxCons: wholeNumber({
    about: 'Maximum number of connections, at least two; password checks use up to half as many more.',
    fallback: 10,
    min: 1,
    max: 1000,
  }),
  idleTimeout: wholeNumber({
    about: 'Milliseconds after which an unused connection is closed; 0 for never.',
    fallback: 60_000,
    max: 86_400_000,
  }),
  timeoutMillis: wholeNumber({
    about: 'How long connecting, and each answer, may take, in milliseconds.',
    fallback: 10_000,
    min: 100,
    max: 120_000,
  }),
  pageSize: wholeNumber({ about: 'Entries in a page of a long answer.', fallback: 1000, min: 1, max: 10_000 }),
  referrals: choice(['ignore', 'refuse'], {
    about:
      'What happens to a search that the server would continue elsewhere: `ignore` returns what was found here, `refuse` fails. Referrals are never followed.',
    fallback: 'ignore',
  }),
} satisfies ParameterTable

export interface LdapConnectionConfig {
  readonly url: string
  readonly startTls: boolean
  readonly authority: Authority
  readonly credentials: { readonly dn: string; readonly password: string } | undefined
  readonly maxConnections: number
  readonly idleMillis: number
  readonly timeoutMillis: number
  readonly pageSize: number
  readonly referrals: 'ignore' | 'refuse'
}

export function ldapConnection(
  given: ParsedParameters<typeof ldapConnectionParameters>,
  params: Params,
  issues: Issues,
  context: ParseContext,
): LdapConnectionConfig {
  const { isSet, error, refuse } = parameterReport(params, issues)
  if (isSet('url')) for (const name of ['host', 'port', 'useSSL']) refuse(name, 'cannot be given beside "url"')
  else if (!isSet('host')) error('url', '"url" or "host" is required')
  const url = given.url ?? addressOf(given.host ?? 'localhost', given.port, given.useSSL)
  if (url === undefined) error('host', '"host" is not the name of a server')
  const encrypted = url?.startsWith('ldaps:') === true
  if (encrypted && given.startTls) refuse('startTls', 'belongs to ldap://, not to an encrypted address')
  if (isSet('adminDN') !== isSet('adminPasswd')) {
    const [present, missing] = isSet('adminDN') ? ['adminDN', 'adminPasswd'] : ['adminPasswd', 'adminDN']
    error(missing, `"${missing}" is required beside "${present}"`)
  }
  if (isSet('adminPasswd') && !encrypted && !given.startTls && !isLoopback(url)) {
    issues.warning(params.pathOf('adminPasswd'), 'passwords travel unencrypted; use ldaps:// or "startTls"')
  }
  const { adminDN, adminPasswd } = given
  return {
    url: url ?? 'ldap://localhost',
    startTls: given.startTls,
    authority: readAuthority(given, params, issues, context),
    credentials: adminDN && adminPasswd ? { dn: adminDN, password: adminPasswd } : undefined,
    maxConnections: given.maxCons,
    idleMillis: given.idleTimeout,
    timeoutMillis: given.timeoutMillis,
    pageSize: given.pageSize,
    referrals: given.referrals,
  }
}

/** What a target and a directory insert on the same server call it. */
export function ldapSystem({ url }: Pick<LdapConnectionConfig, 'url'>): string {
  const { protocol, hostname, port } = new URL(url)
  return JSON.stringify(['ldap', hostname.toLowerCase(), port || (protocol === 'ldaps:' ? '636' : '389')])
}

function parseLdapUrl(value: string): string {
  const url = URL.parse(value)
  const isAddress = url !== null && (url.protocol === 'ldap:' || url.protocol === 'ldaps:') && url.hostname !== ''
  if (!isAddress || url.username !== '' || url.search !== '' || url.hash !== '' || !/^\/?$/.test(url.pathname)) {
    throw new Error('must be ldap:// or ldaps://, a host and perhaps a port')
  }
  return `${url.protocol}//${url.host}`
}

function addressOf(host: string, port: number, encrypted: boolean): string | undefined {
  const name = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
  try {
    return parseLdapUrl(`${encrypted ? 'ldaps' : 'ldap'}://${name}${port === 0 ? '' : `:${port}`}`)
  } catch {
    return undefined
  }
}

const isLoopback = (url: string | undefined): boolean =>
  url !== undefined && /^ldaps?:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/.test(url)
