import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { type LdapAddress, LdapConnection, type LdapCredentials } from './ldap-connection.ts'
import { asLdapFailure, resultCodeOf, unreachable } from './ldap-failure.ts'

export interface LdapPoolOptions extends LdapAddress {
  /** As errors name the server. */
  readonly name: string
  /** Anonymous when absent. */
  readonly credentials: LdapCredentials | undefined
  readonly maxConnections: number
  /** A connection that nobody used for so long is closed; never for 0. */
  readonly idleMillis: number
}

/** Calls on one connection before another is opened for more. */
const busyAt = 8
const firstBackoffMillis = 100
const maxBackoffMillis = 5000

/**
 * Connections to one server, opened when needed. Calls share them, as LDAP allows; only what runs over several messages
 * gets one of its own. When the server cannot be reached, calls fail at once until the next attempt is due, and the pauses
 * between attempts double up to five seconds.
 */
export class LdapPool {
  readonly #options: LdapPoolOptions
  /** Half of the connections, and one at least, for each of the two uses; binds of others come on top. */
  readonly #maxShared: number
  readonly #shared = new Set<LdapConnection>()
  readonly #spare: LdapConnection[] = []
  readonly #alone: KeyedQueue
  /** Apart from searches, so that slow ones keep nobody from logging in, nor many who log in the searches. */
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
   * Failures are GatewayErrors. With `again`, a call whose connection broke is made once more, on a new one: for what
   * changes nothing.
   */
  async run<T>(asked: string, again: boolean, call: (connection: LdapConnection) => Promise<T>): Promise<T> {
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

  /** A connection that nobody else uses meanwhile. Waits for one no longer than for an answer. */
  async runAlone<T>(asked: string, call: (connection: LdapConnection) => Promise<T>): Promise<T> {
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

  /** Somebody else's bind, on a connection of its own that ends with it. */
  async runAs(credentials: LdapCredentials, asked: string): Promise<void> {
    await this.#binds.run('', async () => {
      // That our own password is refused says nothing of somebody else's.
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
      // Busy, but able to take more while another one is being opened.
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

  /** The server answered the last attempt, and let us not in. */
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
