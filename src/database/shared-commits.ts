import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type { Awaitable } from '#kernel/awaitable.ts'
import { GatewayError } from '#kernel/errors.ts'
import { tracer } from '#kernel/tracing.ts'

/** The connection that writes. Everything is synchronous. */
export interface CommitConnection {
  /** Takes the write lock; false when another process has it. */
  begin(): boolean
  savepoint(): void
  release(): void
  rollbackToSavepoint(): void
  commit(): void
  rollback(): void
  /** False when an error has ended the transaction. */
  readonly inTransaction: boolean
}

interface CommitLimits {
  /** Units that share one commit. */
  readonly units: number
  /** No further unit joins a commit that is this old. */
  readonly joinMillis: number
  /** How long another process may have the write lock. */
  readonly lockMillis: number
  /** How long the units of one commit may take together. */
  readonly unitMillis: number
}

const defaultLimits: CommitLimits = { units: 128, joinMillis: 10, lockMillis: 5000, unitMillis: 10_000 }

interface Unit {
  readonly work: (end: CommitEnd | undefined, late: Lateness) => Awaitable<unknown>
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
}

/**
 * Runs units of work one after another on one connection, and lets those that wait at the same time share a commit:
 * one flush to disk makes them all durable. Each settles only when the commit it was part of is on disk. A failing one
 * is undone alone: the units of its transaction run again, each with its own savepoint. Without a failure there are no
 * savepoints, since they cost SQLite a copy of every page that a unit changes.
 */
export class SharedCommits {
  readonly #connection: CommitConnection
  readonly #limits: CommitLimits
  #waiting: Unit[] = []
  #draining: Promise<void> | undefined

  constructor(connection: CommitConnection, limits: Partial<CommitLimits> = {}) {
    this.#connection = connection
    this.#limits = { ...defaultLimits, ...limits }
  }

  /** `work` gets the end of its commit, unless it must write everything itself. It must not write once it is late. */
  add<T>(work: (end: CommitEnd | undefined, late: Lateness) => Awaitable<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    // Another unit's caller may run it.
    const own = tracer === undefined ? work : tracer.bound(work)
    this.#waiting.push({ work: own, resolve: resolve as (value: unknown) => void, reject })
    this.#draining ??= tracer === undefined ? this.#drain() : tracer.detached(() => this.#drain())
    return promise
  }

  /** Settles when no unit is waiting. */
  async idle(): Promise<void> {
    while (this.#draining !== undefined) await this.#draining
  }

  async #drain(): Promise<void> {
    try {
      do {
        // Units that are added in the same turn of the event loop may share the commit.
        await nextTurn()
        await this.#commitTogether()
      } while (this.#waiting.length > 0)
    } finally {
      this.#draining = undefined
    }
  }

  async #commitTogether(): Promise<void> {
    const connection = this.#connection
    const { units, joinMillis, unitMillis } = this.#limits
    try {
      await this.#begin()
    } catch (error) {
      // Without the write lock no unit can write: all waiting units fail now, not each after its own wait.
      for (const unit of this.#waiting.splice(0)) unit.reject(error)
      return
    }
    const ran: Unit[] = []
    let settle: (() => void)[] = []
    let end: CommitEnd | undefined = new CommitEnd()
    let late = new Lateness(unitMillis)
    const run = async (unit: Unit): Promise<void> => {
      ran.push(unit)
      if (end === undefined) {
        settle.push(await runWithSavepoint(unit, late, connection))
        return
      }
      try {
        settle.push(await runUnit(unit, late, end))
      } catch (error) {
        if (!connection.inTransaction) throw error
        // The first one saw only what is committed, so its error stands. A late one may still be running.
        if (ran.length === 1 || late.isOver) ran.splice(-1, 1, { ...unit, work: () => Promise.reject(error) })
        late.end()
        connection.rollback()
        await this.#begin()
        late = new Lateness(unitMillis)
        end = undefined
        settle = []
        for (const each of ran) settle.push(await runWithSavepoint(each, late, connection))
      }
    }
    try {
      const closes = performance.now() + joinMillis
      do {
        const unit = this.#waiting.shift()
        if (unit === undefined) break
        await run(unit)
      } while (ran.length < units && performance.now() < closes)
      await run(lastUnit)
      connection.commit()
    } catch (error) {
      if (connection.inTransaction) connection.rollback()
      for (const unit of ran) unit.reject(error)
      return
    } finally {
      late.end()
    }
    for (const each of settle) each()
  }

  async #begin(): Promise<void> {
    const giveUp = performance.now() + this.#limits.lockMillis
    while (!this.#connection.begin()) {
      if (performance.now() >= giveUp) {
        throw new GatewayError('TARGET_UNREACHABLE', 'another process keeps the database locked', { retryAfter: 5 })
      }
      await delay(10)
    }
  }
}

type EndWrite = (items: readonly unknown[]) => Promise<void>

/** What the units of a commit leave to its end, to be written once for all of them. */
export class CommitEnd {
  readonly #lists = new Map<unknown, { readonly items: unknown[]; readonly write: EndWrite }>()

  /** The first `write` of the key gets all its items. */
  leave(key: unknown, item: unknown, write: EndWrite): void {
    const list = this.#lists.get(key)
    if (list === undefined) this.#lists.set(key, { items: [item], write })
    else list.items.push(item)
  }

  async write(): Promise<void> {
    for (const { items, write } of this.#lists.values()) await write(items)
  }
}

/** If it fails, all units of the commit run again, and leave nothing to it. */
const lastUnit: Unit = { work: async (end) => await end?.write(), resolve() {}, reject() {} }

/** Returns what settles the unit once the commit is durable. Throws when the unit fails. */
async function runUnit({ work, resolve }: Unit, late: Lateness, end?: CommitEnd): Promise<() => void> {
  const working = work(end, late)
  const value = working instanceof Promise ? await Promise.race([working, late.promise]) : working
  return () => resolve(value)
}

/** The same, but undoes a failing unit. Throws when the whole transaction is lost. */
async function runWithSavepoint(unit: Unit, late: Lateness, connection: CommitConnection): Promise<() => void> {
  connection.savepoint()
  try {
    const settle = await runUnit(unit, late)
    connection.release()
    return settle
  } catch (error) {
    if (!connection.inTransaction) throw error
    connection.rollbackToSavepoint()
    connection.release()
    return () => unit.reject(error)
  }
}

/** Rejects when the time is up. One for a whole commit: a timer for each unit would cost as much as a small unit. */
export class Lateness {
  readonly promise: Promise<never>
  isOver = false
  #timer: NodeJS.Timeout | undefined

  constructor(millis: number) {
    this.promise = new Promise((_, reject) => {
      this.#timer = setTimeout(() => {
        this.isOver = true
        reject(new GatewayError('INTERNAL', 'a transaction waited for something other than its database'))
      }, millis)
    })
    this.promise.catch(() => {})
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}
