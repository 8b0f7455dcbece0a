import type { DatabaseReader, DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { deletedAtOnce, deleteInParts, statement } from '#database/statement.ts'
import { assertStorable, isStorable } from '#database/text-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'

const maxLength = 500

/** Identifies a call, so that a repeated one gets the response of the first. */
export interface IdempotencyKey {
  /** The caller and what it calls: keys of different scopes are independent. */
  readonly scope: string
  readonly key: string
}

export interface IdempotentCall extends IdempotencyKey {
  /** A different body under the same key is a mistake of the caller. */
  readonly bodyHash: string
  /** The run that the call starts. */
  readonly run: string
}

export type Reservation =
  | { readonly kind: 'reserved' }
  /** The key was used before, by this run; `response` is present once the call is answered. */
  | { readonly kind: 'repeated'; readonly run: string; readonly response?: JsonObject }
  /** The key was used for a different body. */
  | { readonly kind: 'other-body' }

export interface IdempotentAnswer extends IdempotencyKey {
  readonly run: string
  readonly response: JsonObject
}

type KeyOfRun = IdempotencyKey & { readonly run: string }

/** For calls whose run is not stored. A call that starts a stored run reserves its key with it: see RunStore.start. */
export class IdempotencyStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /**
   * For a call that is answered within the lease. If it was not, because the process died, the same body can
   * reserve the key again. Throws BAD_REQUEST for a key or scope of more than 500 characters.
   */
  async reserve(call: IdempotentCall, leaseMillis: number): Promise<Reservation> {
    return await this.#client.transaction((tx) => reserveKey(tx, call, leaseMillis))
  }

  /** False when another run has reserved the key since. */
  async answer(answer: IdempotentAnswer): Promise<boolean> {
    return await this.#client.transaction((tx) => answerKey(tx, answer))
  }

  /** Frees a key whose run had no effect. False when it was answered, or belongs to another run. */
  async abandon({ scope, key, run }: KeyOfRun): Promise<boolean> {
    return (await this.#client.transaction((tx) => abandon.run(tx, { scope, key, run }))) > 0
  }

  async find(call: Omit<IdempotentCall, 'run'>): Promise<Reservation | undefined> {
    return await readReservation(this.#client, call)
  }

  /** Removes calls from before then; returns how many. */
  async prune(before: Date): Promise<number> {
    return await deleteInParts(this.#client, deleteBefore, { before: before.getTime() })
  }
}

/** Part of the transaction that starts the run. A null lease never expires. */
export async function reserveKey(
  tx: DatabaseTransaction,
  { scope, key, bodyHash, run }: IdempotentCall,
  lease: number | null,
): Promise<Reservation> {
  assertKey(scope)
  assertKey(key)
  if ((await reserve.first(tx, { scope, key, bodyHash, run, lease })) !== undefined) return { kind: 'reserved' }
  return (await readReservation(tx, { scope, key, bodyHash })) ?? { kind: 'other-body' }
}

/** Reserves keys that never expire, for several calls on PostgreSQL. False, and nothing may be committed, if one was used before. */
export async function reserveKeys(tx: DatabaseTransaction, calls: readonly IdempotentCall[]): Promise<boolean> {
  for (const { scope, key } of calls) {
    assertKey(scope)
    assertKey(key)
  }
  return calls.length === 0 || (await insertKeys.run(tx, { calls: JSON.stringify(calls) })) === calls.length
}

/** False when another run has reserved the key since. */
export async function answerKey(tx: DatabaseTransaction, answer: IdempotentAnswer): Promise<boolean> {
  const { scope, key, run, response } = answer
  return (await setResponse.run(tx, { scope, key, run, response: JSON.stringify(response) })) > 0
}

async function readReservation(
  reader: DatabaseReader,
  { scope, key, bodyHash }: Omit<IdempotentCall, 'run'>,
): Promise<Reservation | undefined> {
  if (!isStorable(scope) || !isStorable(key)) return undefined
  const row = await find.first(reader, { scope, key })
  if (row === undefined) return undefined
  if (row.bodyHash !== bodyHash) return { kind: 'other-body' }
  const { run, response } = row
  return { kind: 'repeated', run, ...(response === null ? {} : { response: JSON.parse(response) as JsonObject }) }
}

function assertKey(text: string): void {
  assertStorable('idempotency key', text)
  if (text.length > maxLength) {
    throw new GatewayError('BAD_REQUEST', 'an idempotency key or scope that is too long', {
      publicText: 'The idempotency key is too long.',
    })
  }
}

/** The first call inserts. A later one with the same body takes over only if the lease expired without an answer. */
const reserve = statement<IdempotentCall & { readonly lease: number | null }, { run: string }>(
  (on) => `insert into idempotency (scope, key, body_hash, run, lease_until, created)
    values (:scope, :key, :bodyHash, :run, ${on.now} + cast(:lease as bigint), ${on.now})
    on conflict (scope, key) do update
    set run = excluded.run, lease_until = excluded.lease_until, created = excluded.created
    where idempotency.lease_until <= ${on.now} and idempotency.response is null
      and idempotency.body_hash = excluded.body_hash
    returning run`,
)
/** In the order of the keys, so that no two transactions wait for each other. */
const insertKeys = statement<{ calls: string }>(
  (on) => `insert into idempotency (scope, key, body_hash, run, created)
    select scope, key, "bodyHash", run, ${on.now}
    from json_to_recordset(cast(:calls as json)) as call(scope text, key text, "bodyHash" text, run text)
    order by scope, key
    on conflict (scope, key) do nothing`,
)
const find = statement<IdempotencyKey, { bodyHash: string; run: string; response: string | null }>(
  `select body_hash as "bodyHash", run, response from idempotency where scope = :scope and key = :key`,
)
const setResponse = statement<KeyOfRun & { readonly response: string }>(
  `update idempotency set response = :response, lease_until = null where scope = :scope and key = :key and run = :run`,
)
const abandon = statement<KeyOfRun>(
  `delete from idempotency where scope = :scope and key = :key and run = :run and response is null`,
)
const deleteBefore = statement<{ before: number }>(
  `delete from idempotency where (scope, key) in
     (select scope, key from idempotency where created < :before limit ${deletedAtOnce})`,
)
