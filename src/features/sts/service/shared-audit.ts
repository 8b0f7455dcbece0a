import type { AuditStore } from '#audit/store/audit-store.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'

interface Waiting {
  readonly row: AuditEntry
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** A commit costs as much as thirty rows. */
const mostRows = 128
/** No longer than the RSA signatures of one endpoint under load, so callers don't notice it. */
const longestWaitMillis = 10

/**
 * Writes the rows of concurrent decisions in one commit. A row waits for tokens that are being signed, a few
 * milliseconds at most; without any it is written at once.
 */
export class SharedAudit {
  readonly #store: Pick<AuditStore, 'append'>
  #waiting: Waiting[] = []
  #timer: NodeJS.Timeout | undefined
  /** The first waiting row has waited long enough. */
  #isLate = false
  #underway = 0
  #writing = false

  constructor(store: Pick<AuditStore, 'append'>) {
    this.#store = store
  }

  /** Runs work that soon ends with a row, so that others can wait for it. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#underway++
    try {
      return await work()
    } finally {
      this.#underway--
      this.#writeWhenDue()
    }
  }

  /** Resolves when the row is durable; rejects if it is not. */
  append(row: AuditEntry): Promise<void> {
    return new Promise((resolve, reject) => {
      const length = this.#waiting.push({ row, resolve, reject })
      if (length === 1) this.#timer = setTimeout(() => this.#writeLate(), longestWaitMillis)
      this.#writeWhenDue()
    })
  }

  #writeLate(): void {
    this.#isLate = true
    this.#writeWhenDue()
  }

  /** One commit at a time: rows that arrive meanwhile share a later one. */
  #writeWhenDue(): void {
    const { length } = this.#waiting
    const isDue = this.#isLate || length >= mostRows || length >= this.#underway
    if (this.#writing || length === 0 || !isDue) return
    clearTimeout(this.#timer)
    const together = this.#waiting.splice(0, mostRows)
    this.#isLate = this.#waiting.length > 0
    this.#writing = true
    void this.#settle(together).finally(() => {
      this.#writing = false
      this.#writeWhenDue()
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
