import { sql } from 'kysely'
import type { When } from '#domain/timer.ts'
import { GatewayError } from '#kernel/errors.ts'
import { databaseNow, readNow, timeOf, type WhenValues, whenSql, whenValues } from '#storage/client/database-time.ts'
import type { SqlClient, SqlTransaction } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable, lookupKey, storable } from '#storage/client/text-keys.ts'
import type { Grant, GrantRevocation, GrantStore, NewGrant } from '#storage/grant-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed, fixedInserts } from '#storage/sql/queries.ts'

const columns = ['id', 'target', 'subject', 'kind', 'name', 'granted', 'expires', 'run', 'state'] as const
const newColumns = [
  'id',
  'target',
  'subject',
  'subject_key',
  'kind',
  'name',
  'name_key',
  'granted',
  'expires',
  'run',
] as const

interface GrantRow {
  readonly id: string
  readonly target: string
  readonly subject: string
  readonly kind: Grant['kind']
  readonly name: string
  readonly granted: number
  readonly expires: number
  readonly run: string | null
  readonly state: Grant['state']
}

type NewRow = Omit<GrantRow, 'state'> & { readonly subject_key: string; readonly name_key: string }

const statements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  const active = sql.lit<'active'>('active')
  return {
    insert: fixedInserts<NewRow>(dialect, newColumns, (db, rows) =>
      db
        .insertInto('grants')
        .values(rows.map((row) => ({ ...row, state: active })))
        .onConflict((conflict) =>
          conflict.columns(['target', 'subject_key', 'kind', 'name_key']).where('state', '=', active).doUpdateSet({
            expires: sql<number>`case when excluded.expires > grants.expires then excluded.expires else grants.expires end`,
          }),
        ),
    ),
    get: fixed<{ id: string }, GrantRow>(dialect, (db, at) =>
      db.selectFrom('grants').select(columns).where('id', '=', at('id')),
    ),
    ofSubject: fixed<{ subject_key: string }, GrantRow>(dialect, (db, at) =>
      db
        .selectFrom('grants')
        .select(columns)
        .where('subject_key', '=', at('subject_key'))
        .where('state', '=', active)
        .orderBy('id')
        .limit(500),
    ),
    due: fixed<{ limit: number }, GrantRow>(dialect, (db, at) =>
      db
        .selectFrom('grants')
        .select(columns)
        .where('state', '=', active)
        .where('expires', '<=', now)
        .orderBy('expires')
        .orderBy('id')
        .limit(at('limit')),
    ),
    extend: fixed<{ id: string } & WhenValues, GrantRow>(dialect, (db, at) => {
      const wanted = whenSql(now, at('due_at'), at('due_in'))
      return db
        .updateTable('grants')
        .set({ expires: sql<number>`case when ${wanted} > expires then ${wanted} else expires end` })
        .where('id', '=', at('id'))
        .where('state', '=', active)
        .returning(columns)
    }),
    revoke: fixed<{ id: string; anyway: number }, GrantRow>(dialect, (db, at) =>
      db
        .updateTable('grants')
        .set({ state: 'revoked' })
        .where('id', '=', at('id'))
        .where('state', '=', active)
        .where((eb) => eb.or([eb('expires', '<=', now), sql<boolean>`cast(${at('anyway')} as bigint) = 1`]))
        .returning(columns),
    ),
  }
})

/** Where the access is granted already, that grant lives until the later of both times. */
export async function insertGrants(tx: SqlTransaction, grants: readonly NewGrant[], now: number): Promise<void> {
  // One after the other: PostgreSQL does not let one statement meet the same row twice.
  for (const { id, target, subject, kind, name, expires, run } of grants) {
    assertStorable('login', subject)
    const row: NewRow = {
      id,
      target: storable(target),
      subject,
      subject_key: lookupKey(subject),
      kind,
      name: storable(name),
      name_key: lookupKey(storable(name)),
      granted: now,
      expires: timeOf(expires, now),
      run: run ?? null,
    }
    for (const query of statements(tx.dialect).insert([row])) await tx.run(query)
  }
}

/** Throws CONFLICT when one of them is not active any more, or not due where it should be. */
export async function revokeGrants(tx: SqlTransaction, revocations: readonly GrantRevocation[]): Promise<void> {
  for (const revocation of revocations) {
    if ((await revoke(tx, revocation)) !== undefined) continue
    throw new GatewayError('CONFLICT', `the grant ${revocation.grant} is not active, or not due`)
  }
}

async function revoke(tx: SqlTransaction, { grant, onlyDue }: GrantRevocation): Promise<GrantRow | undefined> {
  if (!isStorable(grant)) return undefined
  const [row] = await tx.query(statements(tx.dialect).revoke({ id: grant, anyway: onlyDue ? 0 : 1 }))
  return row
}

export class SqlGrantStore implements GrantStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof statements> {
    return statements(this.#client.dialect)
  }

  async add(grants: readonly NewGrant[]): Promise<void> {
    await this.#client.transaction(async (tx) => insertGrants(tx, grants, await readNow(tx)))
  }

  async get(id: string): Promise<Grant | undefined> {
    if (!isStorable(id)) return undefined
    const [row] = await this.#client.query(this.#statements.get({ id }))
    return row && toGrant(row)
  }

  async listOfSubject(subject: string): Promise<readonly Grant[]> {
    if (!isStorable(subject)) return []
    return (await this.#client.query(this.#statements.ofSubject({ subject_key: lookupKey(subject) }))).map(toGrant)
  }

  async due(limit: number): Promise<readonly Grant[]> {
    return (await this.#client.query(this.#statements.due({ limit }))).map(toGrant)
  }

  async extend(id: string, expires: When): Promise<Grant | undefined> {
    if (!isStorable(id)) return undefined
    const query = this.#statements.extend({ id, ...whenValues(expires) })
    const [row] = await this.#client.transaction((tx) => tx.query(query))
    return row && toGrant(row)
  }

  async revoke(revocation: GrantRevocation): Promise<Grant | undefined> {
    const row = await this.#client.transaction((tx) => revoke(tx, revocation))
    return row && toGrant(row)
  }
}

const toGrant = ({ granted, expires, run, ...row }: GrantRow): Grant => ({
  ...row,
  granted: new Date(granted),
  expires: new Date(expires),
  ...(run === null ? {} : { run }),
})
