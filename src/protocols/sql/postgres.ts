import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Awaitable } from '#kernel/awaitable.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import { tracer } from '#kernel/tracing.ts'
import { PostgresServers } from '#protocols/sql/postgres-servers.ts'
import type { Owner } from '#protocols/sql/sql-database.ts'
import { traceStatement, traceTransaction } from '#protocols/sql/statement-span.ts'

const maxAttempts = 8
/** A target with a dead server fails late, and is not retried. */
const quickMillis = 1000

interface PoolOptions {
  readonly url: string
  readonly owner: Owner
  readonly maxConnections: number
  readonly connectMillis: number
  readonly statementMillis: number
  readonly lockMillis: number
  readonly idleInTransactionMillis: number
  /** How long the driver waits for a response. */
  readonly answerMillis: number
  /** Whether statements are sent before those before them are answered, which `Execution.send` needs. */
  readonly pipeline?: boolean
  readonly types: pg.CustomTypesConfig
  /** Called when a connection is lost while it is idle. */
  readonly onIdleLoss: (error: Error) => void
}

/** The statements of a transaction. They fail once it has ended. */
export interface Execution {
  execute(query: pg.QueryConfig): Promise<pg.QueryResult>
  /** Sends a statement without waiting for its result. If it fails, so do all that follow, and the commit, with its error. */
  send(query: pg.QueryConfig): void
}

interface Progress {
  isCommitting: boolean
}

/** Connections to a PostgreSQL database, made on demand. Failures are GatewayErrors, see `postgresError`. */
export class PostgresPool {
  readonly #servers: PostgresServers
  readonly #pool: pg.Pool
  readonly #owner: Owner
  /** Connections whose last commit was not confirmed by a standby. */
  readonly #unconfirmed = new WeakSet<pg.PoolClient>()
  readonly #allDone = Promise.withResolvers<void>()
  #underWay = 0
  #closed = false

  constructor(options: PoolOptions) {
    this.#owner = options.owner
    this.#servers = new PostgresServers(options.url)
    this.#pool = new pg.Pool({
      Client: this.#servers.Client,
      application_name: 'gatehouse',
      max: options.maxConnections,
      connectionTimeoutMillis: options.connectMillis,
      idleTimeoutMillis: 30_000,
      statement_timeout: options.statementMillis,
      lock_timeout: options.lockMillis,
      idle_in_transaction_session_timeout: options.idleInTransactionMillis,
      query_timeout: options.answerMillis,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      pipeline: options.pipeline ?? false,
      types: options.types,
    })
    this.#pool.on('connect', (connection) => {
      connection.on('notice', ({ routine }) => {
        if (routine === waitForStandby) this.#unconfirmed.add(connection)
      })
    })
    this.#pool.on('error', options.onIdleLoss)
  }

  /** Connections, and who waits for one. */
  get figures() {
    const { options, totalCount, idleCount, waitingCount } = this.#pool
    return { max: options.max, total: totalCount, idle: idleCount, waiting: waitingCount }
  }

  /** For reads, which are repeated once: the pool may have a connection that died while it was idle. */
  query(query: pg.QueryConfig): Promise<pg.QueryResult> {
    if (tracer === undefined) return this.#query(query)
    return traceStatement(tracer, 'postgresql', query.text, this.#query.bind(this, query))
  }

  #query(query: pg.QueryConfig): Promise<pg.QueryResult> {
    return this.#counted(async () => {
      const started = performance.now()
      try {
        return await this.#read(query)
      } catch (error) {
        const isLost = isConnectionLoss(error, this.#owner)
        if (!isLost || (this.#owner === 'foreign' && !isQuick(started))) throw error
        return await this.#read(query)
      }
    })
  }

  #read(query: pg.QueryConfig): Promise<pg.QueryResult> {
    return this.#servers.reach(() => this.#pool.query(query))
  }

  /** `work` runs again after a deadlock or a serialization failure. `begin` is the statement that starts the transaction. */
  transaction<T>(work: (execution: Execution) => Awaitable<T>, begin = 'begin'): Promise<T> {
    if (tracer === undefined) return this.#transaction(work, begin)
    return traceTransaction(tracer, 'postgresql', this.#transaction.bind(this, work, begin) as () => Promise<T>)
  }

  /**
   * One statement that writes nothing. Settings and locks that its functions make do not stay in the connection.
   * BAD_REQUEST if its answer has more bytes, TARGET_FAILED if it would write.
   */
  readAlone(query: pg.QueryConfig, mostBytes: number): Promise<pg.QueryResult> {
    const read = () => this.#repeated(() => this.#attemptRead(query, mostBytes))
    return tracer === undefined ? read() : traceStatement(tracer, 'postgresql', query.text, read)
  }

  #transaction<T>(work: (execution: Execution) => Awaitable<T>, begin: string): Promise<T> {
    return this.#repeated((progress) => this.#attempt(work, begin, progress))
  }

  #repeated<T>(work: (progress: Progress) => Promise<T>): Promise<T> {
    return this.#counted(async () => {
      for (let attempt = 1; ; attempt++) {
        const progress = { isCommitting: false }
        const started = performance.now()
        try {
          return await work(progress)
        } catch (error) {
          // A connection that was lost before the commit has undone everything. One repetition, since a dead server stays dead.
          const isLost = this.#owner === 'foreign' && isConnectionLoss(error, this.#owner) && !progress.isCommitting
          // Nothing was written; the repetition looks for a server that can be written.
          const isDemoted = this.#servers.isChosen && codeOf(error) === readOnly
          const isRepeatable = (isLost || isDemoted) && attempt === 1 && isQuick(started)
          if (!isRepeatable && (!isRetryable(error, this.#owner) || attempt >= maxAttempts)) throw error
          await delay(Math.random() * 10 * 2 ** attempt)
        }
      }
    })
  }

  /** A transaction that isn't repeated. */
  once<T>(work: (execution: Execution) => Awaitable<T>): Promise<T> {
    return this.#counted(() => this.#attempt(work, 'begin', { isCommitting: false }))
  }

  /** Waits for calls in progress; later ones are SHUTTING_DOWN. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    if (this.#underWay > 0) await this.#allDone.promise
    await this.#pool.end()
  }

  /** When the pool ends, it forgets callers that wait for a connection, so it ends after the last of them. */
  async #counted<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new GatewayError('SHUTTING_DOWN', 'the database is closed')
    this.#underWay++
    try {
      return await work()
    } catch (error) {
      throw postgresError(error, this.#owner)
    } finally {
      if (--this.#underWay === 0 && this.#closed) this.#allDone.resolve()
    }
  }

  async #attempt<T>(work: (execution: Execution) => Awaitable<T>, begin: string, progress: Progress): Promise<T> {
    const connection = await this.#servers.reach(() => this.#pool.connect())
    const sent: Promise<void>[] = []
    let isOpen = true
    let isBroken = false
    let failure: { readonly error: unknown } | undefined
    // After a failure PostgreSQL rejects everything else, so the first error is the one that counts.
    const fail = (error: unknown): never => {
      failure ??= { error }
      throw failure.error
    }
    const submit = (query: pg.QueryConfig): Promise<pg.QueryResult> => {
      if (!isOpen) throw new GatewayError('INTERNAL', 'a statement came after its transaction had ended')
      if (tracer === undefined) return connection.query(query)
      return traceStatement(tracer, 'postgresql', query.text, () => connection.query(query))
    }
    const execution: Execution = {
      execute: async (query) => await submit(query).catch(fail),
      send: (query) => {
        sent.push(
          submit(query).then(
            () => {},
            (error: unknown) => {
              failure ??= { error }
            },
          ),
        )
      },
    }
    try {
      await connection.query(begin)
      const result = await work(execution)
      isOpen = false
      progress.isCommitting = true
      // The commit of a failed transaction succeeds as a rollback.
      await Promise.all([...sent, connection.query('commit')])
      if (failure !== undefined) throw failure.error
      if (this.#unconfirmed.delete(connection)) throw notConfirmed()
      return result
    } catch (error) {
      isOpen = false
      const isDemoted = codeOf(error) === readOnly
      if (isDemoted) this.#servers.leave(connection)
      isBroken = isDemoted || isConnectionLoss(error, this.#owner)
      if (!isBroken) {
        await connection.query('rollback').catch(() => {
          isBroken = true
        })
      }
      throw error
    } finally {
      connection.release(isBroken)
    }
  }

  async #attemptRead(query: pg.QueryConfig, mostBytes: number): Promise<pg.QueryResult> {
    const connection = await this.#servers.reach(() => this.#pool.connect())
    const { stream } = connection.connection
    let bytes = 0
    const count = ({ length }: Buffer): void => {
      bytes += length
      if (bytes > mostBytes) stream.destroy()
    }
    stream.on('data', count)
    let isUsable = true
    try {
      await connection.query('begin read only')
      return await connection.query(query)
    } catch (error) {
      isUsable = !isConnectionLoss(error, this.#owner)
      if (bytes > mostBytes) {
        throw new GatewayError('BAD_REQUEST', `the statement returns more than ${mostBytes} bytes`, { cause: error })
      }
      if (codeOf(error) !== readOnly || !(error instanceof Error)) throw error
      throw new GatewayError('TARGET_FAILED', error.message, { cause: error })
    } finally {
      stream.off('data', count)
      connection.release(!(isUsable && (await isCleared(connection))))
    }
  }
}

/** Ends the transaction and what functions leave in a connection beyond it: settings and locks. */
async function isCleared(connection: pg.PoolClient): Promise<boolean> {
  try {
    await connection.query('rollback')
    await connection.query('discard all')
    return true
  } catch {
    return false
  }
}

const isQuick = (started: number): boolean => performance.now() - started <= quickMillis

/** SQLSTATEs (PostgreSQL, appendix A) after which a transaction may succeed when it is run again. */
const retryable = new Set([
  '40001', // serialization failure
  '40P01', // deadlock
])
/** In our own schema: the row to which a new one refers was deleted meanwhile. */
const foreignKeyViolation = '23503'
/** Shut down, starting up, out of connections, idle in a transaction for too long. */
const connectionLost = new Set(['57P01', '57P02', '57P03', '53300', '53400', '25P03'])
/** The server became a standby, perhaps. Another connection may lead to the new primary. */
const readOnly = '25006'
/**
 * The function of PostgreSQL that warns when someone ends the wait for a synchronous standby: the commit then succeeds,
 * although a failover undoes it.
 */
const waitForStandby = 'SyncRepWaitForLSN'
const notConfirmed = (): GatewayError =>
  new GatewayError('TARGET_UNREACHABLE', 'the wait for a standby was ended, so the commit may be lost', {
    retryAfter: 5,
  })
const networkCodes = /^(?:ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOENT)$/
const networkTexts =
  /^(?:Connection terminated|timeout exceeded|timeout expired|Client has encountered|Query read timeout)/
/** A target's certificate may be corrected without a restart of ours. */
const foreignCodes = /^(?:ECONN\w+|ERR_SSL\w*|ERR_TLS\w*|CERT_\w+|DEPTH_ZERO\w+|SELF_SIGNED\w+|UNABLE_TO\w+)$/
const foreignTexts = /^(?:Client was closed|The server does not support SSL)/

function field(thrown: unknown, name: string): string {
  const value: unknown = thrown instanceof Error ? Reflect.get(thrown, name) : undefined
  return typeof value === 'string' ? value : ''
}

const codeOf = (thrown: unknown): string =>
  thrown instanceof AggregateError ? codeOf(thrown.errors[0]) : field(thrown, 'code')

function isRetryable(thrown: unknown, owner: Owner): boolean {
  const code = codeOf(thrown)
  return retryable.has(code) || (owner === 'own' && code === foreignKeyViolation)
}

/** The connection is useless, and its transaction is undone, or its outcome is unknown. */
function isConnectionLoss(thrown: unknown, owner: Owner): boolean {
  const code = codeOf(thrown)
  if (code.startsWith('08') || connectionLost.has(code) || networkCodes.test(code)) return true
  if (owner === 'foreign' && foreignCodes.test(code)) return true
  if (code !== '' || !(thrown instanceof Error)) return false
  return networkTexts.test(thrown.message) || (owner === 'foreign' && foreignTexts.test(thrown.message))
}

interface ErrorRule {
  readonly states: RegExp
  readonly code: ErrorCode
  readonly retryAfter?: number
}

const rules: readonly ErrorRule[] = [
  { states: /^23505$/, code: 'CONFLICT' },
  // Data exceptions (a NUL character, a number out of range), an index row that is too large.
  { states: /^22|^54000$/, code: 'BAD_REQUEST' },
  { states: /^(?:57014|55P03)$/, code: 'TARGET_TIMEOUT' },
  { states: /^53|^25006$/, code: 'TARGET_UNREACHABLE', retryAfter: 30 },
]
/** A target's schema isn't ours, nor are its accounts. */
const foreignRules: readonly ErrorRule[] = [
  { states: /^23(?:514|503)$/, code: 'BAD_REQUEST' },
  { states: /^23P01$/, code: 'CONFLICT' },
  // A document or an expression that nests too deeply.
  { states: /^54001$/, code: 'BAD_REQUEST' },
  { states: /^(?:57014|55P03)$/, code: 'TARGET_TIMEOUT', retryAfter: 5 },
  { states: /^58/, code: 'TARGET_UNREACHABLE', retryAfter: 30 },
  ...rules,
]

/** An error of PostgreSQL or its driver as a GatewayError; other errors are returned unchanged. */
export function postgresError(thrown: unknown, owner: Owner = 'own'): unknown {
  if (thrown instanceof GatewayError || !(thrown instanceof Error)) return thrown
  const { message } = thrown
  const code = codeOf(thrown)
  const error = (to: ErrorCode, text: string, retryAfter?: number): GatewayError =>
    new GatewayError(to, text, { cause: thrown, retryAfter })
  if (isConnectionLoss(thrown, owner)) {
    return error('TARGET_UNREACHABLE', `the database does not answer: ${message}`, 5)
  }
  if (isRetryable(thrown, owner)) return error('TARGET_UNREACHABLE', `the transaction kept failing: ${message}`, 1)
  if (owner === 'foreign' && /^(?:28000|28P01|3D000)$/.test(code)) {
    return error('TARGET_UNREACHABLE', `the database rejects the login: ${message}`, 30)
  }
  if (owner === 'foreign' && code === '23502') {
    return error('BAD_REQUEST', `column "${field(thrown, 'column')}" must have a value`)
  }
  // Without a position it is not the syntax of the statement, but that of a value, such as a `jsonpath`.
  if (owner === 'foreign' && code === '42601' && field(thrown, 'position') === '') return error('BAD_REQUEST', message)
  const rule = (owner === 'own' ? rules : foreignRules).find(({ states }) => states.test(code))
  if (rule !== undefined) return error(rule.code, message, rule.retryAfter)
  if (owner === 'foreign') return error('TARGET_FAILED', message)
  return /^[0-9A-Z]{5}$/.test(code) ? error('INTERNAL', message) : thrown
}
