import pg from 'pg'
import type { ReportCursor, ReportQuery, ReportReader, ReportRow, ReportRun } from '#features/reports/report-reader.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import { postgresError } from '#protocols/sql/postgres.ts'
import { PostgresServers } from '#protocols/sql/postgres-servers.ts'

const maxConnections = 4
const rowsAtOnce = 500
const checkMillis = 5000

/** Every value is read as the text that PostgreSQL writes for it. */
const asText: pg.CustomTypesConfig = {
  getTypeParser: (() => (text: unknown) => text) as pg.CustomTypesConfig['getTypeParser'],
}

/** Uses separate connections, so that no other work waits for one that a report uses. */
export class PostgresReports implements ReportReader {
  readonly #servers: PostgresServers
  readonly #pool: pg.Pool
  readonly #ready: () => Promise<void>
  readonly #open = new Set<PostgresCursor>()
  #closed = false

  constructor(url: string, ready: () => Promise<void>, log: Logger) {
    this.#ready = ready
    this.#servers = new PostgresServers(url)
    this.#pool = new pg.Pool({
      Client: this.#servers.Client,
      application_name: 'gatehouse reports',
      max: maxConnections,
      connectionTimeoutMillis: 5000,
      idleTimeoutMillis: 10_000,
      types: asText,
    })
    this.#pool.on('error', (error) => log.warn('an idle connection for reports was lost', { error: error.message }))
  }

  async check({ parts }: Omit<ReportQuery, 'values'>): Promise<void> {
    const connection = await this.#connect()
    try {
      await begin(connection, checkMillis)
      await connection.query({ text: `explain ${withPlaces(parts)}`, values: parts.slice(1).map(() => null) })
    } catch (error) {
      throw reportError(error)
    } finally {
      await end(connection)
    }
  }

  async run(run: ReportRun): Promise<ReportCursor> {
    const connection = await this.#connect()
    const cursor = new PostgresCursor(connection, run)
    this.#open.add(cursor)
    void cursor.ended.then(() => this.#open.delete(cursor))
    await cursor.begin(run)
    return cursor
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await Promise.all(Array.from(this.#open, (cursor) => cursor.close()))
    await this.#pool.end()
  }

  async #connect(): Promise<pg.PoolClient> {
    await this.#ready()
    if (this.#closed) throw new GatewayError('SHUTTING_DOWN', 'the database is closed')
    try {
      return await this.#servers.reach(() => this.#pool.connect())
    } catch (error) {
      throw postgresError(error)
    }
  }
}

class PostgresCursor implements ReportCursor {
  columns: readonly string[] = []
  readonly ended: Promise<void>
  readonly #connection: pg.PoolClient
  readonly #timer: NodeJS.Timeout
  readonly #giveUp: number
  readonly #over = Promise.withResolvers<void>()
  #first: readonly ReportRow[] | undefined
  #left: number
  #closed = false

  constructor(connection: pg.PoolClient, { limit, timeoutMillis }: ReportRun) {
    this.#connection = connection
    this.#left = limit
    this.#giveUp = performance.now() + timeoutMillis
    this.ended = this.#over.promise
    this.#timer = setTimeout(() => void this.close(), timeoutMillis)
  }

  async begin({ parts, values, timeoutMillis }: ReportRun): Promise<void> {
    try {
      await begin(this.#connection, timeoutMillis)
      const text = `declare gatehouse_report no scroll cursor for ${withPlaces(parts)}`
      await this.#connection.query({ text, values: [...values] })
      this.#first = await this.#fetch()
    } catch (error) {
      await this.close()
      throw this.#toError(error)
    }
  }

  async next(): Promise<readonly ReportRow[] | undefined> {
    try {
      if (this.#closed) throw new Error('the report is closed')
      const first = this.#first
      this.#first = undefined
      return first ?? (await this.#fetch())
    } catch (error) {
      throw this.#toError(error)
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return await this.ended
    this.#closed = true
    clearTimeout(this.#timer)
    await end(this.#connection)
    this.#over.resolve()
  }

  async #fetch(): Promise<readonly ReportRow[] | undefined> {
    if (this.#left <= 0) return undefined
    const wanted = Math.min(rowsAtOnce, this.#left)
    const { rows, fields } = await this.#connection.query<(string | null)[]>({
      text: `fetch forward ${wanted} from gatehouse_report`,
      rowMode: 'array',
    })
    this.columns = fields.map(({ name }) => name)
    this.#left = rows.length < wanted ? 0 : this.#left - rows.length
    return rows.length === 0 ? undefined : rows
  }

  #toError(error: unknown): unknown {
    if (performance.now() < this.#giveUp) return reportError(error)
    return new GatewayError('TARGET_TIMEOUT', 'a report took too long', { cause: error, retryAfter: 60 })
  }
}

/** A value that the statement cannot compute with is not a mistake of the caller. */
function reportError(error: unknown): unknown {
  const known = postgresError(error)
  if (!(known instanceof GatewayError) || known.code !== 'BAD_REQUEST') return known
  return new GatewayError('INTERNAL', `a report failed: ${known.message}`, { cause: error })
}

/** Strings are parsed as they were checked, despite the settings of the database. */
async function begin(connection: pg.PoolClient, timeoutMillis: number): Promise<void> {
  await connection.query('begin transaction isolation level repeatable read, read only')
  await connection.query(
    `set local statement_timeout = ${Math.trunc(timeoutMillis)}; set local standard_conforming_strings = on`,
  )
}

/** Discards a connection that cannot roll back at once. */
async function end(connection: pg.PoolClient): Promise<void> {
  const rolledBack = connection.query('rollback').then(
    () => true,
    () => false,
  )
  const inTime = new Promise<boolean>((resolve) => setTimeout(resolve, 500, false).unref())
  connection.release(!(await Promise.race([rolledBack, inTime])))
}

const withPlaces = (parts: ReportQuery['parts']): string => parts.reduce((text, part, i) => `${text} $${i} ${part}`)
