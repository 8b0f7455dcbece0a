/** Which of the servers of an address are used: all, those that are no standbys, or those that accept writes. */
export type WantedServer = 'any' | 'primary' | 'read-write'

export interface PostgresAddress {
  /** One or more, in the order of the address. */
  readonly servers: readonly PostgresServer[]
  readonly wanted: WantedServer
  /** Hosts, ports and name of the database, for messages: without user, password and parameters. */
  readonly shown: string
}

export interface PostgresServer {
  readonly name: string
  /** The address of this server alone. */
  readonly url: string
}

const maxServers = 16
/** A name, an address of IPv4 or IPv6, or the percent-encoded folder of a socket. */
const hostForm = /^(?:\[[\da-f:.]+\]|[\p{L}\p{N}._%-]+)(?::\d+)?$/iu
const wantedServers: readonly string[] = ['any', 'primary', 'read-write'] satisfies WantedServer[]

/**
 * Reads `postgres://user:password@host:port,host:port/name?…`, which means what it means to libpq, with one exception:
 * of several servers, the one that accepts writes is used, unless `target_session_attrs` says otherwise. Throws an Error
 * for what is no such address; the message shows no part of it, since it may contain a password.
 */
export function readPostgresAddress(url: string): PostgresAddress {
  const [, scheme, account = '', hosts = '', rest = ''] =
    /^(postgres(?:ql)?:\/\/)([^/?#]*@)?([^/?#]*)(.*)$/s.exec(url) ?? []
  if (scheme === undefined) throw new Error('an address of PostgreSQL starts with postgres://')
  const { pathname, searchParams, query } = readRest(rest)
  const list = hosts.split(',')
  const named = searchParams.get('host')
  if (list.length > maxServers) throw new Error(`the address has more than ${maxServers} hosts`)
  if (named !== null && (list.length > 1 || named.includes(','))) {
    throw new Error('several hosts must be before the name of the database: postgres://host1:5432,host2:5432/name')
  }
  const servers = list.map((host, i) => {
    const isUsable = host === '' ? list.length === 1 : hostForm.test(host) && URL.canParse(`postgres://${host}/`)
    if (!isUsable) {
      const which = list.length === 1 ? 'the host' : `host ${i + 1}`
      throw new Error(
        `${which} of the address must be a name, an IP address or an IPv6 address in brackets, and may have a port; the characters / ? # and @ of a password are written as %2F %3F %23 and %40`,
      )
    }
    return { name: named ?? (host === '' ? 'localhost' : host), url: `${scheme}${account}${host}${pathname}${query}` }
  })
  // Else a part of a password with a slash would pass as the name, which messages show.
  if (pathname.includes('@')) {
    throw new Error('the characters / ? # and @ of a password or a name are written as %2F %3F %23 and %40')
  }
  const wanted = searchParams.get('target_session_attrs') ?? (list.length > 1 ? 'read-write' : 'any')
  if (!isWanted(wanted)) {
    throw new Error('target_session_attrs of the address must be read-write, primary or any: others cannot be written')
  }
  return { servers, wanted, shown: `${servers.map(({ name }) => name).join(',')}${pathname}` }
}

/** The message of `readPostgresAddress`, if it throws. */
export function postgresAddressProblem(url: string): string | undefined {
  try {
    readPostgresAddress(url)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const isWanted = (text: string): text is WantedServer => wantedServers.includes(text)

/** What follows the hosts. The driver gets the parameters that it knows. */
function readRest(rest: string): { pathname: string; searchParams: URLSearchParams; query: string } {
  const [, pathname = '', search = ''] = /^([^?#]*)(?:\?([^#]*))?/s.exec(rest) ?? []
  const others = search.split('&').filter((part) => part !== '' && !part.startsWith('target_session_attrs='))
  return {
    pathname,
    searchParams: new URLSearchParams(search),
    query: others.length === 0 ? '' : `?${others.join('&')}`,
  }
}
