import { connect, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { Client } from 'ldapts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { type Tracer, tracer } from '#kernel/tracing.ts'
import { asLdapFailure, resultCodeOf, unreachable } from './ldap-failure.ts'
import { emitMessages, LdapMessages } from './ldap-messages.ts'

export interface LdapPoolOptions extends LdapAddress {
  /** The name of the server in errors. */
  readonly name: string
  /** Anonymous when absent. */
  readonly credentials: LdapCredentials | undefined
  readonly maxConnections: number
  /** A connection that was unused for this long is closed; never for 0. */
  readonly idleMillis: number
}

/** How many calls share a connection before another is opened. */
const busyAt = 8
const firstBackoffMillis = 100
const maxBackoffMillis = 5000

/**
 * Connections to one server, opened on demand. Calls share them, as LDAP allows; only operations of several
 * messages get their own. If the server can't be reached, calls fail at once until the next attempt is due, and the
 * pauses between attempts double up to five seconds.
 */
export class LdapPool {
  readonly #options: LdapPoolOptions
  /** Half of the connections, and at least one, for each of the two uses; binds of other users are additional. */
  readonly #maxShared: number
  readonly #shared = new Set<LdapConnection>()
  readonly #spare: LdapConnection[] = []
  readonly #alone: KeyedQueue
  /** Separate from searches, so that slow ones do not block logins, nor many logins the searches. */
  readonly #binds: KeyedQueue
  readonly #sweeper: NodeJS.Timeout
  #opening: Promise<LdapConnection> | undefined
  #failures = 0
  #retryAt = 0
  #lastFailure: unknown
  #closed = false

  constructor(options: LdapPoolOptions) {
    this.#options = options
    this.#maxShared = Math.max(1, Math.ceil(options.maxConnections / 2))
    const maxAlone = Math.max(1, Math.floor(options.maxConnections / 2))
    const refusal = (reason: string) => unreachable(reason, options.name, 'waiting')
    const limits = { width: maxAlone, maxPending: maxAlone + 1000, waitMillis: options.timeoutMillis, refuse: refusal }
    this.#alone = new KeyedQueue(limits)
    this.#binds = new KeyedQueue(limits)
    this.#sweeper = setInterval(() => this.#sweep(), Math.max(1000, options.idleMillis / 2)).unref()
  }

  /**
   * Failures are GatewayErrors. With `again`, a call whose connection broke is repeated once on a new one: only for
   * calls that change nothing.
   */
  run<T>(asked: string, again: boolean, call: (connection: LdapConnection) => Promise<T>): Promise<T> {
    if (tracer === undefined) return this.#run(asked, again, call)
    return this.#traced(tracer, asked, () => this.#run(asked, again, call))
  }

  /** A connection for exclusive use. Waits for one as long as for a response. */
  runAlone<T>(asked: string, call: (connection: LdapConnection) => Promise<T>): Promise<T> {
    if (tracer === undefined) return this.#runAlone(asked, call)
    return this.#traced(tracer, asked, () => this.#runAlone(asked, call))
  }

  /** The bind of another user, on a separate connection that ends with it. */
  runAs(credentials: LdapCredentials, asked: string): Promise<void> {
    if (tracer === undefined) return this.#runAs(credentials, asked)
    return this.#traced(tracer, asked, () => this.#runAs(credentials, asked))
  }

  /** Names and filters have values of users, so the span has only the operation and the server. */
  #traced<T>(tracer: Tracer, asked: string, work: () => Promise<T>): Promise<T> {
    const { protocol, hostname, port } = new URL(this.#options.url)
    const attributes = {
      'network.protocol.name': 'ldap',
      'gatehouse.ldap.operation': asked,
      'server.address': hostname,
      'server.port': Number(port) || (protocol === 'ldaps:' ? 636 : 389),
    }
    return tracer.span({ name: `LDAP ${asked}`, kind: 'client', parent: 'current', attributes }, work)
  }

  async #run<T>(asked: string, again: boolean, call: (connection: LdapConnection) => Promise<T>): Promise<T> {
    for (let attempt = again ? 2 : 1; ; attempt--) {
      const connection = await this.#connection(asked)
      connection.inFlight++
      try {
        return await call(connection)
      } catch (error) {
        if (resultCodeOf(error) === undefined && !(error instanceof GatewayError)) {
          this.#shared.delete(connection)
          connection.close()
          if (attempt > 1 && !this.#closed) continue
        }
        throw asLdapFailure(error, this.#options.name, asked)
      } finally {
        connection.inFlight--
        connection.lastUsed = performance.now()
      }
    }
  }

  async #runAlone<T>(asked: string, call: (connection: LdapConnection) => Promise<T>): Promise<T> {
    return this.#alone.run('', async () => {
      let connection: LdapConnection | undefined
      try {
        do connection = this.#spare.pop()
        while (connection !== undefined && !connection.isAlive)
        connection ??= await this.#open(asked)
        const result = await call(connection)
        if (!this.#closed && connection.isAlive) this.#spare.push(connection)
        else connection.close()
        connection.lastUsed = performance.now()
        return result
      } catch (error) {
        connection?.close()
        throw asLdapFailure(error, this.#options.name, asked)
      }
    })
  }

  async #runAs(credentials: LdapCredentials, asked: string): Promise<void> {
    await this.#binds.run('', async () => {
      // A refusal of our own password says nothing about another user's.
      if (this.#closed || !this.#isTurnedAway) this.#refuseWhileDown(asked)
      try {
        const connection = await LdapConnection.open(this.#options, credentials)
        connection.close()
      } catch (error) {
        throw asLdapFailure(error, this.#options.name, asked)
      }
    })
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#sweeper)
    for (const connection of [...this.#shared, ...this.#spare.splice(0)]) connection.close()
    this.#shared.clear()
  }

  async #connection(asked: string): Promise<LdapConnection> {
    let best: LdapConnection | undefined
    for (const connection of this.#shared) {
      if (!connection.isAlive) this.#shared.delete(connection)
      else if (best === undefined || connection.inFlight < best.inFlight) best = connection
    }
    if (best !== undefined && (best.inFlight < busyAt || this.#shared.size >= this.#maxShared)) return best
    if (best !== undefined) {
      // Busy, but able to accept more while another one is being opened.
      if (this.#opening === undefined && performance.now() >= this.#retryAt) this.#openShared(asked).catch(() => {})
      return best
    }
    return this.#openShared(asked)
  }

  #openShared(asked: string): Promise<LdapConnection> {
    this.#opening ??= this.#open(asked)
      .then((connection) => {
        if (this.#closed) connection.close()
        else this.#shared.add(connection)
        return connection
      })
      .finally(() => {
        this.#opening = undefined
      })
    return this.#opening
  }

  async #open(asked: string): Promise<LdapConnection> {
    this.#refuseWhileDown(asked)
    try {
      const connection = await LdapConnection.open(this.#options, this.#options.credentials)
      this.#failures = 0
      this.#retryAt = 0
      return connection
    } catch (error) {
      const pause = Math.min(maxBackoffMillis, firstBackoffMillis * 2 ** Math.min(this.#failures, 10))
      this.#failures++
      this.#retryAt = performance.now() + pause * (0.75 + Math.random() / 4)
      this.#lastFailure = asLdapFailure(error, this.#options.name, 'connecting')
      throw this.#lastFailure
    }
  }

  #refuseWhileDown(asked: string): void {
    const { name } = this.#options
    if (this.#closed) throw unreachable('closed', name, asked)
    const pause = this.#retryAt - performance.now()
    if (pause <= 0) return
    if (this.#isTurnedAway) throw this.#lastFailure
    throw unreachable(this.#lastFailure, name, asked, Math.ceil(pause / 1000))
  }

  /** The server answered the last attempt, and refused us. */
  get #isTurnedAway(): boolean {
    return this.#lastFailure instanceof GatewayError && this.#lastFailure.code !== 'TARGET_UNREACHABLE'
  }

  #sweep(): void {
    if (this.#options.idleMillis === 0) return
    const before = performance.now() - this.#options.idleMillis
    const isIdle = ({ inFlight, lastUsed }: LdapConnection) => inFlight === 0 && lastUsed < before
    for (const connection of this.#shared) {
      if (!isIdle(connection)) continue
      this.#shared.delete(connection)
      connection.close()
    }
    for (const connection of this.#spare.splice(0)) {
      if (isIdle(connection)) connection.close()
      else this.#spare.push(connection)
    }
  }
}

interface LdapAddress {
  /** `ldap://` or `ldaps://`, host and port. */
  readonly url: string
  /** Encrypts an `ldap://` connection with StartTLS first. */
  readonly startTls: boolean
  /** CAs in PEM; the system's own if absent. */
  readonly ca: string | undefined
  /** For connecting, and for each response. */
  readonly timeoutMillis: number
}

interface LdapCredentials {
  readonly dn: string
  readonly password: string
}

/** One connection, open and bound. It is never reopened: the client would come back without its bind. */
class LdapConnection {
  readonly client: Client
  readonly #socket: () => Socket | undefined
  inFlight = 0
  lastUsed = performance.now()

  private constructor(client: Client, socket: () => Socket | undefined) {
    this.client = client
    this.#socket = socket
  }

  /** Anonymous without credentials. Rejects with the error of the socket, TLS or the server. */
  static async open(address: LdapAddress, credentials: LdapCredentials | undefined): Promise<LdapConnection> {
    const { url, startTls, ca, timeoutMillis } = address
    const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
    const tls: ConnectionOptions = {
      host,
      minVersion: 'TLSv1.2',
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ca,
    }
    let socket: Socket | undefined
    let messages = new LdapMessages()
    const once = <T extends Socket>(made: T): T => {
      if (socket !== undefined) throw new Error('the connection is closed')
      socket = made
      emitMessages(made, messages)
      made.setKeepAlive(true, 30_000).setNoDelay(true)
      return made
    }
    /** What came in plain text must not become the beginning of an encrypted answer. */
    const upgraded = (...args: Parameters<typeof connectTls>) => {
      if (!messages.isEmpty) throw new Error('the server sent more than the answer to StartTLS')
      messages = new LdapMessages()
      const made = connectTls(...args)
      emitMessages(made, messages)
      return made
    }
    const client = new Client({
      url,
      timeout: timeoutMillis,
      connectTimeout: timeoutMillis,
      ...(url.startsWith('ldaps:') ? { tlsOptions: tls } : {}),
      createConnection: ((port: number, name: string) => once(connect(port, name))) as typeof connect,
      createSecureConnection: ((...args: Parameters<typeof connectTls>) =>
        socket === undefined ? once(connectTls(...args)) : upgraded(...args)) as typeof connectTls,
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

  /** The first use opens an anonymous connection. */
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
