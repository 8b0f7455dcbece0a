import { PgBoss } from 'pg-boss'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { SqlTransaction, SqlValue } from '#storage/client/sql-client.ts'
import type { RunWakeUp } from '#storage/run-wake-up.ts'

const queue = 'gatehouse-runs'
/** Small batches, so that of many calls every process hears some. */
const polling = { batchSize: 2, pollingIntervalSeconds: 1 } as const
/** Whoever hears one call claims all that it can, so that more calls within this time say nothing new. */
const pauseMillis = 200
/** A job is only a call. One that nobody heard is of no use later: by then the workers have looked by themselves. */
const jobOptions = { retryLimit: 0, expireInSeconds: 60, retentionSeconds: 60, deleteAfterSeconds: 60 }

/**
 * Wakes the workers of all processes on one PostgreSQL, through pg-boss in a schema of its own: the job is sent by the
 * transaction that makes runs ready, so it is there exactly when they are; of many such transactions only one in a while
 * sends it. The workers of this process hear of the commit directly. While pg-boss cannot be used, only they do, and the others look by themselves.
 */
export class PgBossWakeUp implements RunWakeUp {
  readonly #url: string
  readonly #log: Logger
  readonly #schema: string
  #boss: PgBoss | undefined
  #usable = false
  #closed = false
  #wake: (() => void) | undefined
  #called = Number.NEGATIVE_INFINITY
  #later: NodeJS.Timeout | undefined
  /** Of transactions that have sent a call. */
  readonly #calling = new WeakSet<readonly string[]>()

  constructor(url: string, log: Logger, schema = 'gatehouse_boss') {
    this.#url = url
    this.#log = log
    this.#schema = schema
  }

  async inTransaction(tx: SqlTransaction, runs: readonly string[]): Promise<void> {
    if (this.#boss === undefined || !this.#usable || performance.now() - this.#called < pauseMillis) return
    this.#calling.add(runs)
    try {
      await this.#boss.send(queue, null, { ...jobOptions, db: within(tx) })
    } catch (cause) {
      // The transaction is lost with the statement; the next one does without.
      this.#usable = false
      this.#log.warn('other processes cannot be woken; they look for runs by themselves', { err: cause })
      throw new GatewayError('TARGET_UNREACHABLE', 'a wake-up could not be sent', { cause, retryAfter: 1 })
    }
  }

  committed(runs: readonly string[]): void {
    this.#wake?.()
    if (this.#calling.has(runs)) this.#called = performance.now()
    else this.#callLater()
  }

  /** What was committed without a call is called for at the end of the pause. */
  #callLater(): void {
    if (!this.#usable || this.#later !== undefined) return
    this.#later = setTimeout(() => {
      this.#later = undefined
      if (!this.#usable) return
      this.#called = performance.now()
      this.#boss?.send(queue, null, jobOptions).catch((err: unknown) => this.#log.debug('pg-boss', { err }))
    }, pauseMillis)
    this.#later.unref()
  }

  async start(wake: () => void): Promise<void> {
    this.#wake = wake
    const boss = new PgBoss({
      connectionString: this.#url,
      application_name: 'gatehouse wake-up',
      schema: this.#schema,
      max: 2,
      schedule: false,
      superviseIntervalSeconds: 30,
    })
    boss.on('error', (error) => this.#log.debug('pg-boss', { err: error }))
    this.#boss = boss
    try {
      await boss.start()
      await boss.createQueue(queue, jobOptions)
      // Known from now on, so that sending reads nothing outside its transaction.
      await boss.getQueue(queue)
      await boss.work(queue, polling, async () => this.#wake?.())
      this.#usable = !this.#closed
    } catch (error) {
      await this.#stop()
      throw error
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#usable = false
    this.#wake = undefined
    clearTimeout(this.#later)
    await this.#stop()
  }

  async #stop(): Promise<void> {
    const boss = this.#boss
    this.#boss = undefined
    await boss?.stop({ graceful: false, close: true }).catch((err: unknown) => this.#log.debug('pg-boss', { err }))
  }
}

type BossDatabase = NonNullable<NonNullable<Parameters<PgBoss['insert']>[2]>['db']>

const within = (tx: SqlTransaction): BossDatabase => ({
  executeSql: async (sql, values = []) => ({
    rows: await tx.query<Record<string, unknown>>({ sql, params: values as SqlValue[], name: undefined }),
  }),
})
