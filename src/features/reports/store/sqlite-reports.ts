import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ReportCursor, ReportQuery, ReportReader, ReportRow, ReportRun } from '#features/reports/report-reader.ts'
import { GatewayError } from '#kernel/errors.ts'
import { sqliteError } from '#protocols/sql/sqlite.ts'
import { openReportFile, type ReportMessage, type ReportTask } from './report-file.ts'

const program = fileURLToPath(new URL('./report-process.ts', import.meta.url))

/** Reads each report in a separate process, which is killed when it takes too long or its cursor is closed. */
export class SqliteReports implements ReportReader {
  readonly #file: string
  readonly #ready: () => Promise<void>
  readonly #open = new Set<ProcessCursor>()
  #closed = false

  constructor(file: string, ready: () => Promise<void>) {
    this.#file = file
    this.#ready = ready
  }

  async check({ parts, sqliteParts = parts }: Omit<ReportQuery, 'values'>): Promise<void> {
    await this.#ready()
    try {
      const database = openReportFile(this.#file)
      try {
        database.prepare(sqliteParts.join(' ? '))
      } finally {
        database.close()
      }
    } catch (error) {
      throw sqliteError(error)
    }
  }

  async run({ parts, sqliteParts = parts, values, limit, timeoutMillis }: ReportRun): Promise<ReportCursor> {
    await this.#ready()
    if (this.#closed) throw closedError()
    const cursor = new ProcessCursor({ file: this.#file, sql: sqliteParts.join(' ? '), values, limit }, timeoutMillis)
    this.#open.add(cursor)
    void cursor.ended.then(() => this.#open.delete(cursor))
    await cursor.begin()
    return cursor
  }

  async close(): Promise<void> {
    this.#closed = true
    const open = [...this.#open]
    for (const cursor of open) cursor.stop(closedError())
    await Promise.all(open.map(({ ended }) => ended))
  }
}

class ProcessCursor implements ReportCursor {
  columns: readonly string[] = []
  /** Resolves when the process has exited. */
  readonly ended: Promise<void>
  readonly #process: ChildProcess
  readonly #lines: AsyncIterator<string>
  readonly #timer: NodeJS.Timeout
  #first: readonly ReportRow[] | undefined
  #failure: GatewayError | undefined
  #last = false

  constructor(task: ReportTask, timeoutMillis: number) {
    this.#process = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'ignore'], env: {} })
    const { stdin, stdout } = this.#process
    if (stdin === null || stdout === null) throw new GatewayError('INTERNAL', 'a process without pipes')
    this.ended = new Promise((resolve) => {
      this.#process.once('close', () => resolve())
      this.#process.once('error', (cause) => {
        this.stop(
          new GatewayError('INTERNAL', `the process of a report could not be started: ${cause.message}`, { cause }),
        )
        resolve()
      })
    })
    this.#timer = setTimeout(() => this.stop(tooSlow()), timeoutMillis)
    this.#lines = createInterface({ input: stdout, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]()
    stdin.on('error', () => {})
    // It stays open: its end means to the process that the gateway has exited.
    stdin.write(`${JSON.stringify(task)}\n`)
  }

  /** Waits for the columns and the first rows. */
  async begin(): Promise<void> {
    try {
      const message = await this.#message()
      if ('columns' in message) this.columns = message.columns
      this.#first = await this.#rows()
    } catch (error) {
      await this.close()
      throw error
    }
  }

  async next(): Promise<readonly ReportRow[] | undefined> {
    if (this.#failure !== undefined) throw this.#failure
    const first = this.#first
    this.#first = undefined
    return first ?? (await this.#rows())
  }

  stop(failure: GatewayError): void {
    this.#failure ??= failure
    this.#process.kill('SIGKILL')
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.stop(new GatewayError('INTERNAL', 'the report is closed'))
    await this.ended
  }

  async #rows(): Promise<readonly ReportRow[] | undefined> {
    if (this.#last) return undefined
    const message = await this.#message()
    if ('rows' in message) return message.rows
    this.#last = true
    return undefined
  }

  async #message(): Promise<Exclude<ReportMessage, { readonly failed: string }>> {
    const line = await this.#lines.next()
    if (this.#failure !== undefined) throw this.#failure
    if (line.done === true)
      throw new GatewayError(
        'INTERNAL',
        'the process of a report exited early, as it does when it uses too much memory',
      )
    const message = JSON.parse(line.value) as ReportMessage
    if ('failed' in message) throw new GatewayError('INTERNAL', `a report failed: ${message.failed}`)
    return message
  }
}

const tooSlow = (): GatewayError => new GatewayError('TARGET_TIMEOUT', 'a report took too long', { retryAfter: 60 })
const closedError = (): GatewayError => new GatewayError('SHUTTING_DOWN', 'the database is closed')
