import { connect, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { Client } from 'ldapts'

export interface LdapAddress {
  /** `ldap://` or `ldaps://`, host and port. */
  readonly url: string
  /** Encrypts an `ldap://` connection with StartTLS first. */
  readonly startTls: boolean
  /** Authorities in PEM; the system's own when absent. */
  readonly ca: string | undefined
  /** For connecting, and for each answer. */
  readonly timeoutMillis: number
}

export interface LdapCredentials {
  readonly dn: string
  readonly password: string
}

/**
 * One connection, open and bound. It ends once and is never opened again: the client under it would come back without
 * having said who it is.
 */
export class LdapConnection {
  readonly client: Client
  readonly #socket: () => Socket | undefined
  inFlight = 0
  lastUsed = performance.now()

  private constructor(client: Client, socket: () => Socket | undefined) {
    this.client = client
    this.#socket = socket
  }

  /** Anonymous without credentials. Rejects with what the socket, TLS or the server said. */
  static async open(address: LdapAddress, credentials: LdapCredentials | undefined): Promise<LdapConnection> {
    const { url, startTls, ca, timeoutMillis } = address
    const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
    const tls: ConnectionOptions = {
      host,
      minVersion: 'TLSv1.2',
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(ca === undefined ? {} : { ca }),
    }
    let socket: Socket | undefined
    const once = <T extends Socket>(made: T): T => {
      if (socket !== undefined) throw new Error('the connection is closed')
      socket = made
      made.setKeepAlive(true, 30_000).setNoDelay(true)
      return made
    }
    const client = new Client({
      url,
      timeout: timeoutMillis,
      connectTimeout: timeoutMillis,
      ...(url.startsWith('ldaps:') ? { tlsOptions: tls } : {}),
      createConnection: ((port: number, name: string) => once(connect(port, name))) as typeof connect,
      createSecureConnection: ((...args: Parameters<typeof connectTls>) =>
        socket === undefined ? once(connectTls(...args)) : connectTls(...args)) as typeof connectTls,
    })
    const connection = new LdapConnection(client, () => socket)
    let late: NodeJS.Timeout | undefined
    try {
      await Promise.race([
        (async () => {
          if (startTls) await client.startTLS(tls)
          if (credentials !== undefined) await client.bind(credentials.dn, credentials.password)
        })(),
        new Promise<never>((_, reject) => {
          late = setTimeout(() => reject(new Error(`no answer in ${timeoutMillis} ms`)), timeoutMillis)
        }),
      ])
    } catch (error) {
      connection.close()
      throw error
    } finally {
      clearTimeout(late)
    }
    return connection
  }

  /** An anonymous connection is opened by its first use. */
  get isAlive(): boolean {
    const socket = this.#socket()
    return socket === undefined || (this.client.isConnected && !socket.destroyed && socket.writable)
  }

  close(): void {
    const socket = this.#socket()
    if (socket === undefined || socket.destroyed) return
    this.client.unbind().catch(() => {})
    socket.end()
    setTimeout(() => socket.destroy(), 1000).unref()
  }
}
