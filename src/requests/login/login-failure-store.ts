import type { SqlClient } from '#database/sql-client.ts'
import { columns, deletedAtOnce, deleteInParts, statement } from '#database/statement.ts'

/** Failed attempts under one key, such as an account or a client address. */
interface LoginFailures {
  readonly failures: number
  /** Attempts before this time are refused. */
  readonly lockedUntil: Date
}

export interface FailurePolicy {
  /** How long a key is locked after this many failures, in milliseconds; 0 if it is not locked. Pure. */
  lockMillis(failures: number): number
  /** Failures are forgotten this long after the lock ended, unless there was another. */
  readonly forgetMillis: number
}

interface FailureRow {
  readonly failures: number
  readonly countedAt: number
  readonly lockedUntil: number
  readonly forgetAt: number
}

/** Beyond this number, those that are forgotten first are forgotten now. Locks last longest. */
const mostKeys = 1_000_000

/** Keys are opaque and of bounded length: hashes of user input. */
export class LoginFailureStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /**
   * Counts a failed attempt, atomically. While the key is locked, nothing is counted and `refused` is true. If the clock was
   * set back since the last attempt, that attempt counts as made now: a lock starts again, and lasts no longer.
   */
  async count(key: string, policy: FailurePolicy, now: Date): Promise<LoginFailures & { readonly refused: boolean }> {
    const time = now.getTime()
    return await this.#client.transaction(async (tx) => {
      await ensure.run(tx, { key })
      const known = (await findForUpdate.first(tx, { key })) ?? {
        failures: 0,
        countedAt: 0,
        lockedUntil: 0,
        forgetAt: 0,
      }
      const back = Math.max(0, known.countedAt - time)
      const locked = known.lockedUntil - back
      if (locked > time) {
        if (back > 0) await replace.run(tx, { ...known, key, countedAt: time, lockedUntil: locked })
        return { failures: known.failures, lockedUntil: new Date(locked), refused: true }
      }
      const failures = (known.forgetAt > time ? known.failures : 0) + 1
      const lockedUntil = time + Math.max(0, policy.lockMillis(failures))
      const forgetAt = lockedUntil + policy.forgetMillis
      await replace.run(tx, { key, failures, countedAt: time, lockedUntil, forgetAt })
      return { failures, lockedUntil: new Date(lockedUntil), refused: false }
    })
  }

  /** Forgets the failures of a key. */
  async clear(key: string): Promise<void> {
    await this.#client.transaction((tx) => deleteByKey.run(tx, { key }))
  }

  /** Removes one failure after an attempt succeeded that was counted under a shared key. */
  async forgive(key: string): Promise<void> {
    await this.#client.transaction((tx) => forgive.run(tx, { key }))
  }

  /** Removes the keys whose failures are forgotten, and those beyond `most`; returns how many. */
  async deleteForgotten(now: Date, most = mostKeys): Promise<number> {
    const forgotten = await deleteInParts(this.#client, deleteForgotten, { now: now.getTime() })
    return forgotten + (await deleteInParts(this.#client, deleteBeyond, { most }))
  }
}

/** Adds the row that is locked next, so that transactions that count the same key wait for each other. */
const ensure = statement<{ key: string }>(
  `insert into login_failures (key, failures, counted_at, locked_until, forget_at) values (:key, 0, 0, 0, 0)
   on conflict (key) do nothing`,
)
const findForUpdate = statement<{ key: string }, FailureRow>(
  (on) =>
    `select ${columns(['failures', 'countedAt', 'lockedUntil', 'forgetAt'])} from login_failures
     where key = :key ${on.forUpdate}`,
)
const replace = statement<FailureRow & { readonly key: string }>(
  `update login_failures set failures = :failures, counted_at = :countedAt, locked_until = :lockedUntil,
     forget_at = :forgetAt where key = :key`,
)
const deleteByKey = statement<{ key: string }>(`delete from login_failures where key = :key`)
const forgive = statement<{ key: string }>(
  `update login_failures set failures = failures - 1 where key = :key and failures > 0`,
)
const deleteForgotten = statement<{ now: number }>(
  `delete from login_failures where key in
     (select key from login_failures where forget_at <= :now limit ${deletedAtOnce})`,
)
const deleteBeyond = statement<{ most: number }>(
  `delete from login_failures where key in
     (select key from login_failures order by forget_at desc limit ${deletedAtOnce} offset :most)`,
)
