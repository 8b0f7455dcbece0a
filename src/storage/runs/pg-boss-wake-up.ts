import { PgBoss } from 'pg-boss'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { SqlValue } from '#protocols/sql/sql-database.ts'
import type { DatabaseTransaction } from '#storage/client/sql-client.ts'
import type { RunWakeUp } from '#storage/runs/wake-up.ts'

const queue = 'gatehouse-runs'
/** Small batches, so that every process gets some of many jobs. */
const polling = { batchSize: 2, pollingIntervalSeconds: 1 } as const
/** A woken worker claims all that it can, so more jobs within this time are useless. */
const pauseMillis = 200
/** A job only wakes workers. A lost one is useless later: by then the workers have looked on their own schedule. */
const jobOptions = { retryLimit: 0, expireInSeconds: 60, retentionSeconds: 60, deleteAfterSeconds: 60 }

/**
 * Wakes the workers of all processes on one PostgreSQL through pg-boss, in its own schema. The transaction that
 * makes runs ready sends the job, so the job exists exactly if they do; of many such transactions within
 * `pauseMillis` only one sends it. The workers of this process are woken directly after the commit. While pg-boss
 * fails, the other processes find the run with their regular look.
 */
export class PgBossWakeUp implements RunWakeUp {
  readonly #url: string
  readonly #log: Logger
  readonly #schema: string
  #boss: PgBoss | undefined
  #usable = false
  #closed = false
  #wake: (() => void) | undefined
  #sent = Number.NEGATIVE_INFINITY
  #later: NodeJS.Timeout | undefined
  /** The runs of transactions that have sent a job. */
  readonly #sending = new WeakSet<readonly string[]>()

  constructor(url: string, log: Logger, schema = 'gatehouse_boss') {
    this.#url = url
    this.#log = log
    this.#schema = schema
  }

  async inTransaction(tx: DatabaseTransaction, runs: readonly string[]): Promise<void> {
    if (this.#boss === undefined || !this.#usable || performance.now() - this.#sent < pauseMillis) return
    this.#sending.add(runs)
    try {
      await this.#boss.send(queue, null, { ...jobOptions, db: within(tx) })
    } catch (cause) {
      // The transaction fails with the statement; the next one sends no job.
      this.#usable = false
      this.#log.warn('cannot wake other processes; they find runs at their next regular look', { err: cause })
      throw new GatewayError('TARGET_UNREACHABLE', 'could not send a wake-up job', { cause, retryAfter: 1 })
    }
  }

  committed(runs: readonly string[]): void {
    this.#wake?.()
    if (this.#sending.has(runs)) this.#sent = performance.now()
    else this.#sendLater()
  }

  /** Commits that sent no job get one at the end of the pause. */
  #sendLater(): void {
    if (!this.#usable || this.#later !== undefined) return
    this.#later = setTimeout(() => {
      this.#later = undefined
      if (!this.#usable) return
      this.#sent = performance.now()
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
      // pg-boss caches the queue, so that sending reads nothing outside its transaction.
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

const within = (tx: DatabaseTransaction): BossDatabase => ({
  executeSql: async (sql, values = []) => ({
    rows: await tx.query<Record<string, unknown>>({ sql, params: values as SqlValue[], name: undefined }),
  }),
})
