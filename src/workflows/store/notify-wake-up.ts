import type pg from 'pg'
import type { Logger } from '#kernel/logger.ts'
import { PostgresServers } from '#protocols/sql/postgres-servers.ts'
import type { RunWakeUp } from './wake-up.ts'

const channel = 'gatehouse_runs'
/** A woken worker claims all that it can, so more notifications within this time are useless. */
const pauseMillis = 200
const connectMillis = 5000
/** How often to ask whether the server still answers: nothing else is sent by a process that only listens. */
const checkMillis = 15_000
const disconnectMillis = 1000
const firstRetryMillis = 500
const maxRetryMillis = 30_000

/**
 * Wakes the workers of all processes on one PostgreSQL by LISTEN and NOTIFY, on a connection of its own. The workers of
 * this process are woken directly. NOTIFY is sent after the commit and at most once per `pauseMillis`: inside the
 * transaction it would make all commits of the database wait for each other. A process that dies in between, or a
 * connection that is lost, costs no run: the other processes find it with their regular look.
 */
export class NotifyWakeUp implements RunWakeUp {
  readonly #servers: PostgresServers
  readonly #log: Logger
  #client: pg.Client | undefined
  #closed = false
  #wake: (() => void) | undefined
  #sent = Number.NEGATIVE_INFINITY
  #later: NodeJS.Timeout | undefined
  #retry: NodeJS.Timeout | undefined
  #check: NodeJS.Timeout | undefined

  constructor(url: string, log: Logger) {
    this.#servers = new PostgresServers(url)
    this.#log = log
  }

  committed(): void {
    this.#wake?.()
    if (this.#client === undefined || this.#later !== undefined) return
    const pause = this.#sent + pauseMillis - performance.now()
    if (pause <= 0) {
      this.#notify()
      return
    }
    this.#later = setTimeout(() => {
      this.#later = undefined
      this.#notify()
    }, pause)
    this.#later.unref()
  }

  #notify(): void {
    this.#sent = performance.now()
    this.#send(`notify ${channel}`)
  }

  #send(statement: string): void {
    const client = this.#client
    client?.query(statement).catch((err: unknown) => {
      this.#log.debug('the connection for wake-ups failed', { err })
      // A connection whose other side is gone would not report it for a quarter of an hour, or ever.
      client.connection.stream.destroy()
    })
  }

  async start(wake: () => void): Promise<void> {
    this.#wake = wake
    if (!this.#closed) await this.#listen()
  }

  #listen(): Promise<void> {
    return this.#servers.reach(() => this.#listenOnce())
  }

  async #listenOnce(): Promise<void> {
    const client = new this.#servers.Client({
      application_name: 'gatehouse wake-up',
      connectionTimeoutMillis: connectMillis,
      query_timeout: connectMillis,
      keepAlive: true,
      keepAliveInitialDelayMillis: 30_000,
    })
    client.on('notification', ({ processId }) => {
      // This process was woken when it sent the notification.
      if (processId !== (client as { processID?: number }).processID) this.#wake?.()
    })
    client.on('error', (err) => this.#log.debug('the connection for wake-ups failed', { err }))
    client.on('end', () => this.#lost(client))
    try {
      await client.connect()
      await client.query(`listen ${channel}`)
    } catch (error) {
      await disconnect(client)
      throw error
    }
    if (this.#closed) return await disconnect(client)
    this.#client = client
    this.#check = setInterval(() => this.#send('select 1'), checkMillis).unref()
  }

  #lost(client: pg.Client): void {
    if (client !== this.#client) return
    this.#client = undefined
    clearInterval(this.#check)
    if (this.#closed) return
    this.#log.warn('other processes cannot be notified until the database answers; they poll for runs')
    this.#listenAgain(firstRetryMillis)
  }

  #listenAgain(afterMillis: number): void {
    this.#retry = setTimeout(() => {
      this.#listen().then(
        // Notifications were missed meanwhile.
        () => this.#wake?.(),
        (err: unknown) => {
          this.#log.debug('the connection for wake-ups failed', { err })
          if (!this.#closed) this.#listenAgain(Math.min(afterMillis * 2, maxRetryMillis))
        },
      )
    }, afterMillis)
    this.#retry.unref()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#wake = undefined
    clearTimeout(this.#later)
    clearTimeout(this.#retry)
    clearInterval(this.#check)
    const client = this.#client
    this.#client = undefined
    if (client !== undefined) await disconnect(client)
  }
}

/** Does not wait for a database that does not answer. */
async function disconnect(client: pg.Client): Promise<void> {
  const timer = setTimeout(() => client.connection.stream.destroy(), disconnectMillis)
  await client.end().catch(() => {})
  clearTimeout(timer)
}
