import type { Logger } from '#kernel/logger.ts'
import type { JournalEntry, JournalPage, JournalQuery } from './journal-entry.ts'
import type { JournalStore } from './journal-store.ts'

/** The name and size of a journal. */
interface JournalOptions {
  /** Modules that open the same name share one journal. */
  readonly name: string
  /** How many of the latest entries stay. */
  readonly keep: number
}

/** How many entries of one journal may wait; while the database can't be reached, the latest stay. */
const maxWaiting = 5000
const writeEveryMillis = 1000

interface Ring {
  keep: number
  users: number
  waiting: JournalEntry[]
}

/**
 * Journals in the database. Entries of all journals are collected in memory and written at most once a second, in
 * one transaction: a write for each call would cost more than most calls.
 */
export class Journals {
  readonly #store: Pick<JournalStore, 'append' | 'list'>
  readonly #log: Logger
  readonly #rings = new Map<string, Ring>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #failing = false

  constructor(store: Pick<JournalStore, 'append' | 'list'>, log: Logger) {
    this.#store = store
    this.#log = log
  }

  /** The caller closes it, which writes the entries that were added. */
  open({ name, keep }: JournalOptions) {
    const ring = this.#rings.get(name) ?? { keep, users: 0, waiting: [] }
    this.#rings.set(name, ring)
    ring.keep = keep
    ring.users++
    let open = true
    return {
      /** Never throws and never waits. The entry is written within a second, so a crash may lose that second. */
      add: (entry: JournalEntry): void => this.#add(ring, entry),
      close: async (): Promise<void> => {
        if (!open) return
        open = false
        await this.write()
        if (--ring.users === 0) this.#rings.delete(name)
      },
    }
  }

  /** Throws BAD_REQUEST for an `after` that isn't the `next` of a page. */
  async list(query: JournalQuery): Promise<JournalPage> {
    await this.write()
    return await this.#store.list(query)
  }

  #add(ring: Ring, entry: JournalEntry): void {
    ring.waiting.push(entry)
    // At twice the limit, so that entries are dropped in bulk and not with every new one.
    const most = Math.min(ring.keep, maxWaiting)
    if (ring.waiting.length >= 2 * most) ring.waiting = ring.waiting.slice(-most)
    this.#timer ??= setTimeout(() => void this.write(), writeEveryMillis).unref()
  }

  /** Writes the collected entries. Never rejects: the first failed write is logged. */
  async write(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    while (this.#writing !== undefined) await this.#writing
    const batches = [...this.#rings].flatMap(([journal, ring]) => {
      const { keep, waiting } = ring
      ring.waiting = []
      return waiting.length === 0 ? [] : [{ journal, ring, keep, entries: waiting.slice(-Math.min(keep, maxWaiting)) }]
    })
    if (batches.length === 0) return
    this.#writing = this.#store
      .append(batches)
      .then(
        () => {
          this.#failing = false
        },
        (err: unknown) => {
          if (!this.#failing) this.#log.warn('the journal could not be written', { err })
          this.#failing = true
          for (const { ring, entries } of batches) ring.waiting = [...entries, ...ring.waiting]
        },
      )
      .finally(() => {
        this.#writing = undefined
      })
    await this.#writing
  }

  close(): Promise<void> {
    return this.write()
  }
}
