import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { columns, ListStatement, RowInsert, statement } from '#database/statement.ts'
import { assertStorable, isStorable } from '#database/text-keys.ts'
import type { JsonObject } from '#kernel/json.ts'

/** A Security Event Token before it is signed. */
export interface StoredEvent {
  /** Its `jti`; unique. */
  readonly id: string
  readonly time: Date
  /** The name of the key that signs it. */
  readonly key: string
  readonly claims: JsonObject
}

interface EventRow {
  readonly stream: string
  /** The order within the stream. */
  readonly number: number
  readonly id: string
  readonly time: number
  readonly keyName: string
  readonly claims: string
}

const stored = ['id', 'time', 'keyName', 'claims'] as const

/** A claim on the delivery of a stream. */
interface DeliveryClaim {
  /** Consecutive failures before this claim. */
  readonly failures: number
}

/** Events for receivers: stored until they are removed, in the order of their stream. */
export class EventStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /**
   * Appends all events to the stream, or none. Concurrent appends to one stream wait for each other, so that a reader
   * never sees a later event before an earlier one.
   */
  async append(stream: string, events: readonly StoredEvent[]): Promise<void> {
    if (events.length === 0) return
    assertStorable('stream', stream)
    await this.#client.transaction(async (tx) => {
      const first = (await advance(tx, stream, events.length)) - events.length + 1
      const rows = events.map(({ id, time, key, claims }, i) => ({
        stream,
        number: first + i,
        id,
        time: time.getTime(),
        keyName: key,
        claims: JSON.stringify(claims),
      }))
      insert.run(tx, rows)
    })
  }

  /** Oldest first. */
  async read(stream: string, limit: number): Promise<readonly StoredEvent[]> {
    if (!isStorable(stream)) return []
    const rows = await readOldest.all(this.#client, { stream, limit })
    return rows.map(({ id, time, keyName, claims }) => ({
      id,
      time: new Date(time),
      key: keyName,
      claims: JSON.parse(claims) as JsonObject,
    }))
  }

  /** Skips unknown ids and events of other streams. Returns how many it removed. */
  async remove(stream: string, ids: readonly string[]): Promise<number> {
    const known = [...new Set(ids)].filter(isStorable)
    if (known.length === 0 || !isStorable(stream)) return 0
    return await this.#client.transaction((tx) => deleteByIds.run(tx, { stream }, known))
  }

  /** Every stream that was ever appended to. */
  async names(): Promise<readonly string[]> {
    return (await listStreams.all(this.#client, {})).map(({ name }) => name)
  }

  /** Drops the oldest events beyond `keep`, and those from before `since`. */
  async trim(
    stream: string,
    { keep, since }: { readonly keep: number; readonly since: Date },
  ): Promise<{ readonly dropped: number; readonly oldest?: Date }> {
    if (!isStorable(stream)) return { dropped: 0 }
    const before = await findOldest.first(this.#client, { stream })
    if (before === undefined) return { dropped: 0 }
    const tooMany = before.latest - before.number >= keep
    if (!tooMany && before.time >= since.getTime()) return { dropped: 0, oldest: new Date(before.time) }
    const dropped = await this.#client.transaction(async (tx) => {
      const many = tooMany ? await deleteBeyond.run(tx, { stream, keep }) : 0
      return many + (await deleteOlder.run(tx, { stream, since: since.getTime() }))
    })
    const after = await findOldest.first(this.#client, { stream })
    return after === undefined ? { dropped } : { dropped, oldest: new Date(after.time) }
  }

  /**
   * Claims the delivery of the stream, or extends the owner's claim. Undefined while another owner has it, before
   * the time of the next attempt, and if nothing was ever appended.
   */
  async claim(
    stream: string,
    owner: string,
    { now, until }: { readonly now: Date; readonly until: Date },
  ): Promise<DeliveryClaim | undefined> {
    if (!isStorable(stream)) return undefined
    const values = { stream, owner, now: now.getTime(), until: until.getTime() }
    return await this.#client.transaction((tx) => claim.first(tx, values))
  }

  /** Ends the claim, if the owner still has it. */
  async release(
    stream: string,
    owner: string,
    { failures, retryAt }: { readonly failures: number; readonly retryAt?: Date },
  ): Promise<void> {
    const values = { stream, owner, failures, retryAt: retryAt?.getTime() ?? 0 }
    await this.#client.transaction((tx) => release.run(tx, values))
  }
}

/** Locks the row of the stream until the transaction ends, so that numbers become visible in their order. */
async function advance(tx: DatabaseTransaction, stream: string, by: number): Promise<number> {
  const row = await advanceStream.first(tx, { stream, by })
  if (row !== undefined) return row.latest
  await createStream.run(tx, { stream })
  return (await advanceStream.first(tx, { stream, by }))?.latest ?? by
}

const createStream = statement<{ stream: string }>(
  `insert into event_streams (name, latest, owner, lease_until, failures, retry_at) values (:stream, 0, '', 0, 0, 0)
   on conflict do nothing`,
)
const advanceStream = statement<{ stream: string; by: number }, { latest: number }>(
  `update event_streams set latest = latest + :by where name = :stream returning latest`,
)
const listStreams = statement<object, { name: string }>(`select name from event_streams order by name`)
const claim = statement<{ stream: string; owner: string; now: number; until: number }, DeliveryClaim>(
  `update event_streams set owner = :owner, lease_until = :until
   where name = :stream and retry_at <= :now and (owner = :owner or lease_until <= :now) returning failures`,
)
const release = statement<{ stream: string; owner: string; failures: number; retryAt: number }>(
  `update event_streams set owner = '', lease_until = 0, failures = :failures, retry_at = :retryAt
   where name = :stream and owner = :owner`,
)

const insert = new RowInsert<EventRow>('events', ['stream', 'number', ...stored])
const readOldest = statement<{ stream: string; limit: number }, Pick<EventRow, (typeof stored)[number]>>(
  `select ${columns(stored)} from events where stream = :stream order by number limit :limit`,
)
const findOldest = statement<{ stream: string }, { number: number; time: number; latest: number }>(
  `select events.number, events.time, event_streams.latest
   from events join event_streams on event_streams.name = events.stream
   where events.stream = :stream order by events.number limit 1`,
)
const deleteByIds = new ListStatement<{ stream: string }, string>(
  `delete from events where id in (:list) and stream = :stream`,
)
const deleteOlder = statement<{ stream: string; since: number }>(
  `delete from events where stream = :stream and time < :since`,
)
const deleteBeyond = statement<{ stream: string; keep: number }>(
  `delete from events where stream = :stream and number <=
     (select number from events where stream = :stream order by number desc limit 1 offset :keep)`,
)
