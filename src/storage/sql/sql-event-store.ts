import type { JsonObject } from '#kernel/json.ts'
import type { SqlClient, SqlTransaction } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable } from '#storage/client/text-keys.ts'
import type { DeliveryTurn, EventStore, StoredEvent } from '#storage/event-store.ts'
import { eventStatements } from '#storage/sql/event-statements.ts'

export class SqlEventStore implements EventStore {
  readonly #client: SqlClient
  readonly #statements: ReturnType<typeof eventStatements>

  constructor(client: SqlClient) {
    this.#client = client
    this.#statements = eventStatements(client.dialect)
  }

  async append(stream: string, events: readonly StoredEvent[]): Promise<void> {
    if (events.length === 0) return
    assertStorable('stream', stream)
    const records = events.map(({ id, time, key, claims }) => ({
      stream,
      id,
      time: time.getTime(),
      key_name: key,
      claims: JSON.stringify(claims),
    }))
    await this.#client.transaction(async (tx) => {
      const latest = await this.#advance(tx, stream, records.length)
      const first = latest - records.length + 1
      for (const query of this.#statements.insert(records.map((row, i) => ({ ...row, number: first + i })))) {
        await tx.run(query)
      }
    })
  }

  /** The row of the stream is locked until the transaction ends, so numbers become visible in their order. */
  async #advance(tx: SqlTransaction, stream: string, by: number): Promise<number> {
    const { advance, create } = this.#statements
    const [row] = await tx.query(advance({ stream, by }))
    if (row !== undefined) return row.latest
    await tx.run(create({ stream }))
    const [made] = await tx.query(advance({ stream, by }))
    return made?.latest ?? by
  }

  async read(stream: string, limit: number): Promise<readonly StoredEvent[]> {
    if (!isStorable(stream)) return []
    const rows = await this.#client.query(this.#statements.read({ stream, limit }))
    return rows.map(({ id, time, key_name, claims }) => ({
      id,
      time: new Date(time),
      key: key_name,
      claims: JSON.parse(claims) as JsonObject,
    }))
  }

  async remove(stream: string, ids: readonly string[]): Promise<number> {
    const known = [...new Set(ids)].filter(isStorable)
    if (known.length === 0 || !isStorable(stream)) return 0
    const queries = this.#statements.remove({ stream }, known)
    return await this.#client.transaction(async (tx) => {
      let removed = 0
      for (const query of queries) removed += await tx.run(query)
      return removed
    })
  }

  async names(): Promise<readonly string[]> {
    return (await this.#client.query(this.#statements.names({}))).map(({ name }) => name)
  }

  async trim(
    stream: string,
    { keep, since }: { readonly keep: number; readonly since: Date },
  ): Promise<{ readonly dropped: number; readonly oldest?: Date }> {
    if (!isStorable(stream)) return { dropped: 0 }
    const { oldest, dropOld, dropMany } = this.#statements
    const [before] = await this.#client.query(oldest({ stream }))
    if (before === undefined) return { dropped: 0 }
    const tooMany = before.latest - before.number >= keep
    if (!tooMany && before.time >= since.getTime()) return { dropped: 0, oldest: new Date(before.time) }
    const dropped = await this.#client.transaction(async (tx) => {
      const many = tooMany ? await tx.run(dropMany({ stream, keep })) : 0
      return many + (await tx.run(dropOld({ stream, since: since.getTime() })))
    })
    const [after] = await this.#client.query(oldest({ stream }))
    return after === undefined ? { dropped } : { dropped, oldest: new Date(after.time) }
  }

  async claim(
    stream: string,
    owner: string,
    { now, until }: { readonly now: Date; readonly until: Date },
  ): Promise<DeliveryTurn | undefined> {
    if (!isStorable(stream)) return undefined
    const query = this.#statements.claim({ stream, owner, now: now.getTime(), until: until.getTime() })
    const [turn] = await this.#client.transaction((tx) => tx.query(query))
    return turn
  }

  async release(
    stream: string,
    owner: string,
    { failures, retryAt }: { readonly failures: number; readonly retryAt?: Date },
  ): Promise<void> {
    const query = this.#statements.release({ stream, owner, failures, retry_at: retryAt?.getTime() ?? 0 })
    await this.#client.transaction((tx) => tx.run(query))
  }
}
