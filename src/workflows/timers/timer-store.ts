import { type DueValues, dueText, dueValues, timeOf } from '#database/database-time.ts'
import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { columns, RowInsert, statement, withoutNulls } from '#database/statement.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { When } from '#kernel/time.ts'
import type { ClaimedTimer, NewTimer, TimerClaim } from './timer.ts'

interface TimerRow extends TimerClaim {
  readonly kind: string
  readonly due: number
  readonly run: string | null
  readonly approval: string | null
  readonly data: string
  readonly leaseUntil: number
}

const claimed = ['id', 'kind', 'due', 'run', 'approval', 'data', 'fence'] as const
type ClaimedRow = Pick<TimerRow, (typeof claimed)[number]>

/** Timers are inserted, and mostly deleted, in the commit of what they belong to: see RunEffects and ApprovalStore. */
export class TimerStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /** Leases the earliest timers that are due and not leased. Concurrent callers never get the same one. */
  async claim(limit: number, leaseMillis: number): Promise<readonly ClaimedTimer[]> {
    const rows = await this.#client.transaction((tx) => claim.all(tx, { limit, lease: leaseMillis }))
    return rows.sort((a, b) => a.due - b.due).map(fromRow)
  }

  /** Deletes the timer. False when it is gone or another worker has claimed it. */
  async done({ id, fence }: TimerClaim): Promise<boolean> {
    return (await this.#client.transaction((tx) => deleteClaimed.run(tx, { id, fence }))) > 0
  }

  /** Gives the timer back, with a new due time. False when it is gone or another worker has claimed it. */
  async release({ id, fence }: TimerClaim, due: When): Promise<boolean> {
    return (await this.#client.transaction((tx) => release.run(tx, { id, fence, ...dueValues(due) }))) > 0
  }
}

export async function insertTimers(tx: DatabaseTransaction, timers: readonly NewTimer[], now: number): Promise<void> {
  const rows = timers.map(
    ({ id, kind, due, run, approval, data }): TimerRow => ({
      id,
      kind,
      due: timeOf(due, now),
      run: run ?? null,
      approval: approval ?? null,
      data: JSON.stringify(data ?? {}),
      fence: 0,
      leaseUntil: 0,
    }),
  )
  insert.run(tx, rows)
}

/** Throws VERSION_MISMATCH if one of them is gone, or another worker has claimed it. */
export async function finishTimers(tx: DatabaseTransaction, timers: readonly TimerClaim[]): Promise<void> {
  for (const { id, fence } of timers) {
    if ((await deleteClaimed.run(tx, { id, fence })) > 0) continue
    throw new GatewayError('VERSION_MISMATCH', `the timer ${id} is gone, or another worker has claimed it`)
  }
}

export const deleteTimersOfApproval = (tx: DatabaseTransaction, approval: string): void =>
  deleteOfApproval.send(tx, { approval })

export const deleteTimersOfRun = (tx: DatabaseTransaction, run: string): void => deleteOfRun.send(tx, { run })

const fromRow = ({ due, data, ...row }: ClaimedRow): ClaimedTimer => ({
  ...withoutNulls(row),
  due: new Date(due),
  data: JSON.parse(data) as JsonObject,
})

const insert = new RowInsert<TimerRow>('timers', [...claimed, 'leaseUntil'])
const claim = statement<{ limit: number; lease: number }, ClaimedRow>(
  (on) => `with free as
     (select id from timers where due <= ${on.now} and lease_until <= ${on.now}
      order by due, id limit :limit ${on.forUpdateSkipLocked})
   update timers set fence = fence + 1, lease_until = ${on.now} + :lease
   where id in (select id from free) returning ${columns(claimed)}`,
)
const release = statement<TimerClaim & DueValues>(
  (on) => `update timers set due = ${dueText(on)}, lease_until = 0 where id = :id and fence = :fence`,
)
const deleteClaimed = statement<TimerClaim>(`delete from timers where id = :id and fence = :fence`)
const deleteOfApproval = statement<{ approval: string }>(`delete from timers where approval = :approval`)
const deleteOfRun = statement<{ run: string }>(`delete from timers where run = :run`)
