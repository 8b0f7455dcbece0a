import type { AuditEntry } from '#domain/audit.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { AuditStore } from '#storage/audit/audit-store.ts'

interface Waiting {
  readonly row: AuditEntry
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** A commit costs the same for one row as for a hundred. */
const mostRows = 128
/** Shorter than a signature under load, so callers don't notice it. */
const longestWaitMillis = 5

/**
 * Writes the rows of concurrent decisions in one commit. A row waits for running decisions, a few milliseconds at
 * most; without any it is written at once.
 */
export class SharedAudit {
  readonly #store: Pick<AuditStore, 'append'>
  #waiting: Waiting[] = []
  #timer: NodeJS.Timeout | undefined
  #underway = 0
  #writing = false

  constructor(store: Pick<AuditStore, 'append'>) {
    this.#store = store
  }

  /** Runs a decision that may end with a row, so that others can wait for it. */
  async during<T>(decision: () => Promise<T>): Promise<T> {
    this.#underway++
    try {
      return await decision()
    } finally {
      this.#underway--
      this.#writeWhenDue()
    }
  }

  /** Resolves when the row is durable; rejects if it is not. */
  append(row: AuditEntry): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row, resolve, reject })
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined
        this.#write()
      }, longestWaitMillis)
      this.#writeWhenDue()
    })
  }

  #writeWhenDue(): void {
    const { length } = this.#waiting
    if (length > 0 && (length >= mostRows || length >= this.#underway)) this.#write()
  }

  /** One commit at a time: rows that arrive meanwhile share the next one. */
  #write(): void {
    if (this.#writing || this.#waiting.length === 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    const together = this.#waiting.splice(0, mostRows)
    this.#writing = true
    void this.#settle(together).finally(() => {
      this.#writing = false
      this.#write()
    })
  }

  async #settle(together: readonly Waiting[]): Promise<void> {
    try {
      await this.#store.append(together.map(({ row }) => row))
      for (const { resolve } of together) resolve()
    } catch (error) {
      const isAlone = together.length === 1
      if (isAlone || isAway(error)) for (const { reject } of together) reject(error)
      // A row that can't be written does not fail the others.
      else for (const one of together) await this.#store.append([one.row]).then(one.resolve, one.reject)
    }
  }
}

/** Then each row would wait as long again, and so would all later ones. */
const isAway = (error: unknown): boolean =>
  error instanceof GatewayError && (error.code === 'TARGET_UNREACHABLE' || error.code === 'TARGET_TIMEOUT')
