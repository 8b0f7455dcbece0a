import type { SqlClient } from '#database/sql-client.ts'
import { deletedAtOnce, deleteInParts, statement } from '#database/statement.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import { secretHash } from '#kernel/ids.ts'
import type { Rate, RateLimits } from '#kernel/rate-limit.ts'

/** Beyond this number, those that are full again first are forgotten. */
const mostKeys = 200_000
const rememberedRefusals = 20_000

/**
 * Rates that all processes of a PostgreSQL database share, by its clock. A bucket is one number, the time at which it is
 * full again; a row whose time has passed means the same as no row.
 */
export class RateLimitStore implements RateLimits {
  readonly #client: SqlClient
  /** Until when keys are refused, by this process's steady clock. A caller who continues anyway costs the database nothing. */
  readonly #refused = new BoundedCache<number>(rememberedRefusals)

  constructor(client: SqlClient) {
    this.#client = client
  }

  async take(limit: string, key: string, { burst, perMinute }: Rate, calls = 1): Promise<number | undefined> {
    const id = secretHash(JSON.stringify([limit, key]))
    const known = (this.#refused.get(id) ?? 0) - performance.now()
    if (known > 0) return secondsOf(known)
    const each = 60_000 / perMinute
    const latest = (burst - 1) * each
    const wait = await this.#client.transaction(async (tx) => {
      const taken = await take.first(tx, { key: id, cost: calls * each, all: burst * each, latest })
      if (taken !== undefined) return undefined
      return (await selectWait.first(tx, { key: id, latest }))?.wait ?? 0
    }, 'soon')
    if (wait === undefined) return undefined
    this.#refused.set(id, performance.now() + wait)
    return secondsOf(wait)
  }

  /** Removes rows that mean nothing, and those beyond `most`. */
  async prune(most = mostKeys): Promise<void> {
    await deleteInParts(this.#client, deleteFull, {})
    await deleteInParts(this.#client, deleteBeyond, { most })
  }
}

const secondsOf = (millis: number): number => Math.max(1, Math.ceil(millis / 1000))

/** Not `now()`, which is earlier than what a transaction wrote that this one waited for. */
const now = 'cast(extract(epoch from clock_timestamp()) * 1000 as double precision)'

/**
 * No row if there is no call left. A time after that of an empty bucket is one of a clock that was set back, or of a greater
 * burst: the call continues, and the bucket is empty.
 */
const take = statement<{ key: string; cost: number; all: number; latest: number }, { fullAt: number }>(
  `insert into rate_limits as known (key, full_at)
   values (:key, ${now} + least(cast(:cost as double precision), cast(:all as double precision)))
   on conflict (key) do update
   set full_at = least(greatest(known.full_at, ${now}) + cast(:cost as double precision),
     ${now} + cast(:all as double precision))
   where known.full_at <= ${now} + cast(:latest as double precision)
     or known.full_at > ${now} + cast(:all as double precision)
   returning full_at as "fullAt"`,
)
const selectWait = statement<{ key: string; latest: number }, { wait: number }>(
  `select full_at - ${now} - cast(:latest as double precision) as wait from rate_limits where key = :key`,
)
/** The rows are chosen once: within `in (…)`, PostgreSQL may choose and lock them again for each row of the table. */
const deleteFull = statement<object>(
  `with gone as materialized
     (select key from rate_limits where full_at <= ${now} limit ${deletedAtOnce} for update skip locked)
   delete from rate_limits where key in (select key from gone)`,
)
const deleteBeyond = statement<{ most: number }>(
  `with gone as materialized
     (select key from rate_limits order by full_at desc limit ${deletedAtOnce} offset :most for update skip locked)
   delete from rate_limits where key in (select key from gone)`,
)
