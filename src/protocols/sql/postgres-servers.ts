import type { Duplex } from 'node:stream'
import pg from 'pg'
import { GatewayError } from '#kernel/errors.ts'
import { type PostgresServer, readPostgresAddress, type WantedServer } from '#protocols/sql/postgres-address.ts'

type Connected = (error?: Error | null) => void

/**
 * Chooses among the servers of an address. The one that was used last is tried first, so a dead server costs time once. As
 * soon as one server accepts writes, connections to others end: those servers were primary before.
 */
export class PostgresServers {
  /** For `pg.Pool`, without a connection string: each new client is for the server that is tried at that time. */
  readonly Client: new (
    config?: pg.ClientConfig,
  ) => pg.Client
  /** Whether a server that can't be written is refused. */
  readonly isChosen: boolean
  readonly #servers: readonly PostgresServer[]
  readonly #failures = new Map<PostgresServer, string>()
  readonly #open = new Map<pg.Client, PostgresServer>()
  #current: PostgresServer

  constructor(url: string) {
    const { servers, wanted } = readPostgresAddress(url)
    const [first] = servers
    if (first === undefined) throw new Error('an address has a server')
    this.#servers = servers
    this.#current = first
    this.isChosen = wanted !== 'any'
    this.Client = clientClass(wanted, {
      current: () => this.#current,
      connected: (client, server) => this.#connected(client, server),
      failed: (server, error) => this.#failed(server, error),
    })
  }

  /** Runs `connect` again while another server may answer, at most once for each. */
  async reach<T>(connect: () => Promise<T>): Promise<T> {
    for (let left = this.#servers.length; ; left--) {
      const tried = this.#current
      try {
        return await connect()
      } catch (error) {
        if (this.#servers.length === 1 || this.#current === tried) throw error
        if (left > 1) continue
        const reasons = this.#servers.map((server) => `${server.name}: ${this.#failures.get(server) ?? 'not tried'}`)
        const message = `no server of the database can be used: ${reasons.join('; ')}`
        throw new GatewayError('TARGET_UNREACHABLE', message, { cause: error, retryAfter: 5 })
      }
    }
  }

  /** The server of this client refuses to write: ends all connections to it, so that new ones look for another. */
  leave(client: pg.Client): void {
    const server = this.#open.get(client)
    if (server === undefined || !this.isChosen) return
    this.#failed(server, new Error('it is read-only'))
    for (const [other, its] of this.#open) if (its === server && other !== client) other.connection.stream.destroy()
  }

  #connected(client: pg.Client, server: PostgresServer): void {
    this.#open.set(client, server)
    client.once('end', () => this.#open.delete(client))
    const isLate = server !== this.#current && Array.from(this.#open.values()).includes(this.#current)
    if (!isLate) this.#current = server
    if (!this.isChosen) return
    for (const [other, its] of this.#open) if (its !== this.#current) other.connection.stream.destroy()
  }

  #failed(server: PostgresServer, error: unknown): void {
    this.#failures.set(server, error instanceof Error ? error.message || String(Reflect.get(error, 'code')) : 'unknown')
    // The account is the same for all servers.
    if (server !== this.#current || isRejection(error)) return
    this.#current = this.#servers[(this.#servers.indexOf(server) + 1) % this.#servers.length] ?? server
  }
}

/**
 * The driver throws for what it can't read, such as a request for a login by Kerberos, where only the process could catch
 * it. Ends the connection instead.
 */
function refuseUnreadable(connection: pg.Connection): void {
  const driver = connection as unknown as { attachListeners(stream: Duplex): void }
  const attach = driver.attachListeners.bind(connection)
  driver.attachListeners = (stream) => {
    attach(stream)
    for (const read of stream.listeners('data')) {
      stream.off('data', read as () => void).on('data', (bytes: Buffer) => {
        try {
          read.call(stream, bytes)
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error)
          const message = `the answer of the database cannot be read: ${reason}`
          stream.destroy(new GatewayError('TARGET_UNREACHABLE', message, { cause: error, retryAfter: 30 }))
        }
      })
    }
  }
}

interface Choice {
  current(): PostgresServer
  connected(client: pg.Client, server: PostgresServer): void
  failed(server: PostgresServer, error: unknown): void
}

/** The server is there, and rejects user, password or database. */
const isRejection = (error: unknown): boolean =>
  /^(?:28|3D)/.test(error instanceof Error ? String(Reflect.get(error, 'code')) : '')

/** As a text, which is read alike by clients that read every column as a text. */
const readState = `select concat_ws(' ', case when pg_is_in_recovery() then 'standby' end,
  case when current_setting('transaction_read_only') = 'on' then 'readOnly' end) as state`

interface ServerState {
  readonly isStandby: boolean
  readonly isReadOnly: boolean
}

function clientClass(wanted: WantedServer, choice: Choice): new (config?: pg.ClientConfig) => pg.Client {
  return class extends pg.Client {
    readonly #server: PostgresServer
    /** Settings that the server reports, at first and when they change. */
    readonly #reported = new Map<string, boolean>()
    #isConnected = false

    constructor(config?: pg.ClientConfig) {
      const server = choice.current()
      super({ ...config, connectionString: server.url })
      this.#server = server
      refuseUnreadable(this.connection)
      // A connection that is lost while nothing waits for it.
      this.on('error', () => {})
      if (wanted !== 'any') this.#watch()
    }

    override connect(): Promise<pg.Client>
    override connect(callback: Connected): void
    override connect(callback?: Connected): Promise<pg.Client> | undefined {
      const connected = this.#connect()
      if (callback === undefined) return connected
      connected.then(() => callback(), callback)
      return undefined
    }

    async #connect(): Promise<pg.Client> {
      try {
        await super.connect()
        if (wanted !== 'any') {
          const problem = problemOf(this.#reportedState() ?? (await this.#askState()))
          if (problem !== undefined) throw this.#unwanted(problem)
        }
      } catch (error) {
        choice.failed(this.#server, error)
        // Ended, it reports no lost connection; a silent server does not close its side.
        this.end().catch(() => {})
        this.connection.stream.destroy()
        throw error
      }
      this.#isConnected = true
      choice.connected(this, this.#server)
      return this
    }

    #watch(): void {
      this.connection.on('parameterStatus', (message: { parameterName: string; parameterValue: string }) => {
        this.#reported.set(message.parameterName, message.parameterValue === 'on')
        const state = this.#reportedState()
        const problem = state === undefined ? undefined : problemOf(state)
        // Before that, `connect` looks at it.
        if (problem === undefined || !this.#isConnected) return
        choice.failed(this.#server, this.#unwanted(problem))
        this.connection.stream.destroy()
      })
    }

    /** PostgreSQL reports both since version 14; a pooler in between may not. */
    #reportedState(): ServerState | undefined {
      const isStandby = this.#reported.get('in_hot_standby')
      const isReadOnly = this.#reported.get('default_transaction_read_only')
      return isStandby === undefined || isReadOnly === undefined ? undefined : { isStandby, isReadOnly }
    }

    async #askState(): Promise<ServerState> {
      const { rows } = await this.query<{ state: string }>(readState)
      const state = rows[0]?.state ?? ''
      return { isStandby: state.includes('standby'), isReadOnly: state.includes('readOnly') }
    }

    #unwanted(problem: string): GatewayError {
      return new GatewayError('TARGET_UNREACHABLE', `${this.#server.name} ${problem}`, { retryAfter: 5 })
    }
  }

  function problemOf({ isStandby, isReadOnly }: ServerState): string | undefined {
    if (isStandby) return 'is a standby'
    return isReadOnly && wanted === 'read-write' ? 'is read-only' : undefined
  }
}
