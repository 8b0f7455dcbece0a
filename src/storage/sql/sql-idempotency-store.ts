import { sql } from 'kysely'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { databaseNow } from '#storage/client/database-time.ts'
import type { SqlClient, SqlReader, SqlTransaction } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable } from '#storage/client/text-keys.ts'
import type {
  IdempotencyKey,
  IdempotencyStore,
  IdempotentAnswer,
  IdempotentCall,
  Reservation,
} from '#storage/idempotency-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { pruneAtOnce, pruneInParts } from '#storage/sql/prune.ts'
import { fixed } from '#storage/sql/queries.ts'

const maxLength = 500

interface Reserve extends IdempotencyKey {
  readonly body_hash: string
  readonly run: string
  /** Null for a reservation that lasts. */
  readonly lease: number | null
}

const statements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  return {
    /** The first inserts; the same body takes over only from one that did not answer in its time. */
    reserve: fixed<Reserve, { run: string }>(dialect, (db, at) => ({
      compile: () =>
        sql<{ run: string }>`
          insert into idempotency (scope, key, body_hash, run, lease_until, created)
          values (${at('scope')}, ${at('key')}, ${at('body_hash')}, ${at('run')},
            ${now} + cast(${at('lease')} as bigint), ${now})
          on conflict (scope, key) do update
          set run = excluded.run, lease_until = excluded.lease_until, created = excluded.created
          where idempotency.lease_until <= ${now} and idempotency.response is null
            and idempotency.body_hash = excluded.body_hash
          returning run`.compile(db),
    })),
    find: fixed<IdempotencyKey, { body_hash: string; run: string; response: string | null }>(dialect, (db, at) =>
      db
        .selectFrom('idempotency')
        .select(['body_hash', 'run', 'response'])
        .where('scope', '=', at('scope'))
        .where('key', '=', at('key')),
    ),
    answer: fixed<IdempotencyKey & { run: string; response: string }, unknown>(dialect, (db, at) =>
      db
        .updateTable('idempotency')
        .set({ response: at('response'), lease_until: null })
        .where('scope', '=', at('scope'))
        .where('key', '=', at('key'))
        .where('run', '=', at('run')),
    ),
    abandon: fixed<IdempotencyKey & { run: string }, unknown>(dialect, (db, at) =>
      db
        .deleteFrom('idempotency')
        .where('scope', '=', at('scope'))
        .where('key', '=', at('key'))
        .where('run', '=', at('run'))
        .where('response', 'is', null),
    ),
    prune: fixed<{ before: number }, unknown>(dialect, (db, at) => ({
      compile: () =>
        sql`delete from idempotency where (scope, key) in
          (select scope, key from idempotency where created < ${at('before')} limit ${sql.lit(pruneAtOnce)})`.compile(
          db,
        ),
    })),
  }
})

/** As part of the transaction that starts the run; a null lease makes the reservation last. */
export async function reserveKey(
  tx: SqlTransaction,
  { scope, key, bodyHash, run }: IdempotentCall,
  lease: number | null,
): Promise<Reservation> {
  assertKey(scope)
  assertKey(key)
  const query = statements(tx.dialect).reserve({ scope, key, body_hash: bodyHash, run, lease })
  const [reserved] = await tx.query(query)
  if (reserved !== undefined) return { kind: 'reserved' }
  return (await readReservation(tx, { scope, key, bodyHash })) ?? { kind: 'other-body' }
}

/** False when the key is another run's by now. */
export async function answerKey(tx: SqlTransaction, answer: IdempotentAnswer): Promise<boolean> {
  const { scope, key, run, response } = answer
  const query = statements(tx.dialect).answer({ scope, key, run, response: JSON.stringify(response) })
  return (await tx.run(query)) > 0
}

async function readReservation(
  reader: SqlReader,
  { scope, key, bodyHash }: Omit<IdempotentCall, 'run'>,
): Promise<Reservation | undefined> {
  if (!isStorable(scope) || !isStorable(key)) return undefined
  const [row] = await reader.query(statements(reader.dialect).find({ scope, key }))
  if (row === undefined) return undefined
  if (row.body_hash !== bodyHash) return { kind: 'other-body' }
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

export class SqlIdempotencyStore implements IdempotencyStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof statements> {
    return statements(this.#client.dialect)
  }

  async reserve(call: IdempotentCall, leaseMillis: number): Promise<Reservation> {
    return await this.#client.transaction((tx) => reserveKey(tx, call, leaseMillis))
  }

  async answer(answer: IdempotentAnswer): Promise<boolean> {
    return await this.#client.transaction((tx) => answerKey(tx, answer))
  }

  async abandon({ scope, key, run }: IdempotencyKey & { readonly run: string }): Promise<boolean> {
    const query = this.#statements.abandon({ scope, key, run })
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }

  async find(call: Omit<IdempotentCall, 'run'>): Promise<Reservation | undefined> {
    return await readReservation(this.#client, call)
  }

  prune(before: Date): Promise<number> {
    return pruneInParts(this.#client, this.#statements.prune({ before: before.getTime() }))
  }
}
