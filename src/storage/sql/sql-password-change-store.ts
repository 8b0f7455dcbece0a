import { sql } from 'kysely'
import type { AuditEntry } from '#domain/audit.ts'
import type { NewMail } from '#domain/mail.ts'
import { formerIdentity, type Identity, storedIdentity } from '#identity/identity.ts'
import { secretHash } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import { appendToChain } from '#storage/audit/audit-chain.ts'
import { databaseNow, readNow } from '#storage/client/database-time.ts'
import type { SqlClient, SqlTransaction } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable } from '#storage/client/text-keys.ts'
import { insertMails } from '#storage/mail-store.ts'
import type {
  ChangeClaim,
  ChangeOutcome,
  PasswordChange,
  PasswordChangeStore,
  ResetLink,
} from '#storage/password-change-store.ts'
import type { SessionEnding } from '#storage/session-store.ts'
import { endSessions } from '#storage/session-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { pruneAtOnce, pruneInParts } from '#storage/sql/prune.ts'
import { fixed } from '#storage/sql/queries.ts'

const hourMillis = 3600_000
/** Longer than the cookie of a known device lives. */
const changedForMillis = 100 * 24 * hourMillis

interface Row {
  readonly id: string
  readonly form: string
  readonly owner: string
  readonly data: string
  readonly lease: number
}

interface NewRow extends Row {
  readonly token_hash: string | null
  readonly state: 'open' | 'writing'
  readonly created: number
  readonly expires: number
}

/** Tells locks on users from other advisory locks. */
const linkLock = 21

const columns = ['id', 'form', 'owner', 'data', 'lease'] as const

const statements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  return {
    /** PostgreSQL has no row to lock for a user's first link; SQLite has one writer at a time. */
    turn: fixed<{ owner: string }, unknown>(dialect, (db, at) => ({
      compile: () =>
        dialect === 'postgres'
          ? sql`select pg_advisory_xact_lock(hashtextextended(${at('owner')}, ${sql.lit(linkLock)}))`.compile(db)
          : sql`select ${at('owner')}`.compile(db),
    })),
    recent: fixed<{ owner: string }, { id: string }>(dialect, (db, at) =>
      db
        .selectFrom('password_changes')
        .select('id')
        .where('owner', '=', at('owner'))
        .where('token_hash', 'is not', null)
        .where('created', '>', sql<number>`${now} - ${sql.lit(hourMillis)}`),
    ),
    /** One that is being used stays to be settled, but can't be used again: its time is over. */
    replace: fixed<{ owner: string; except: string }, unknown>(dialect, (db, at) => ({
      compile: () =>
        sql`update password_changes
          set state = case when state = 'open' then 'replaced' else state end, expires = case when expires < ${now} then expires else ${now} end
          where owner = ${at('owner')} and id <> ${at('except')} and token_hash is not null and state in ('open', 'writing')`.compile(
          db,
        ),
    })),
    insert: fixed<NewRow, unknown>(dialect, (db, at) =>
      db.insertInto('password_changes').values({
        id: at('id'),
        form: at('form'),
        token_hash: at('token_hash'),
        owner: at('owner'),
        data: at('data'),
        state: at('state'),
        lease: at('lease'),
        created: at('created'),
        expires: at('expires'),
      }),
    ),
    find: fixed<{ form: string; token_hash: string }, Row>(dialect, (db, at) =>
      db
        .selectFrom('password_changes')
        .select(columns)
        .where('token_hash', '=', at('token_hash'))
        .where('form', '=', at('form'))
        .where('state', 'in', ['open', 'writing'])
        .where('expires', '>', now),
    ),
    claim: fixed<{ form: string; token_hash: string; millis: number }, Row>(dialect, (db, at) => ({
      compile: () =>
        sql<Row>`
          update password_changes set state = 'writing', lease = ${now} + cast(${at('millis')} as bigint)
          where token_hash = ${at('token_hash')} and form = ${at('form')} and expires > ${now}
            and (state = 'open' or (state = 'writing' and lease <= ${now}))
          returning id, form, owner, data, lease`.compile(db),
    })),
    use: fixed<{ id: string; lease: number }, unknown>(dialect, (db, at) =>
      db
        .updateTable('password_changes')
        .set({ state: 'used' })
        .where('id', '=', at('id'))
        .where('state', '=', 'writing')
        .where('lease', '=', at('lease')),
    ),
    reopen: fixed<{ id: string; lease: number }, unknown>(dialect, (db, at) => ({
      compile: () =>
        sql`update password_changes set state = case when token_hash is null then 'used' else 'open' end
          where id = ${at('id')} and state = 'writing' and lease = ${at('lease')}`.compile(db),
    })),
    changed: fixed<{ id: string; owner: string }, unknown>(dialect, (db, at) => ({
      compile: () =>
        sql`insert into password_changes (id, form, token_hash, owner, data, state, lease, created, expires)
          values (${at('id')}, '', null, ${at('owner')}, '{}', 'used', 0, ${now}, ${now} + ${sql.lit(changedForMillis)})
          on conflict (id) do update set created = excluded.created, expires = excluded.expires`.compile(db),
    })),
    changedAt: fixed<{ id: string }, { created: number }>(dialect, (db, at) =>
      db.selectFrom('password_changes').select('created').where('id', '=', at('id')),
    ),
    underWay: fixed<{ limit: number }, Row>(dialect, (db, at) =>
      db
        .selectFrom('password_changes')
        .select(columns)
        .where('state', '=', 'writing')
        .orderBy('lease')
        .limit(at('limit')),
    ),
    abandoned: fixed<{ limit: number }, Row>(dialect, (db, at) =>
      db
        .selectFrom('password_changes')
        .select(columns)
        .where('state', '=', 'writing')
        .where('lease', '<=', now)
        .orderBy('lease')
        .limit(at('limit')),
    ),
    prune: fixed<object, unknown>(dialect, (db) =>
      db.deleteFrom('password_changes').where('id', 'in', (query) =>
        query
          .selectFrom('password_changes')
          .select('id')
          .where('expires', '<=', sql<number>`${now} - ${sql.lit(hourMillis)}`)
          .where('state', '<>', 'writing')
          .limit(pruneAtOnce),
      ),
    ),
  }
})

export class SqlPasswordChangeStore implements PasswordChangeStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof statements> {
    return statements(this.#client.dialect)
  }

  async addLink(
    link: ResetLink,
    perHour: number,
    mails: readonly NewMail[],
    audit: readonly AuditEntry[],
  ): Promise<'added' | 'too many'> {
    const { turn, recent, replace, insert } = this.#statements
    const { tokenHash, validMillis, owner } = link
    return await this.#client.transaction(async (tx) => {
      // Those of one user follow one another, so that the count holds.
      await tx.query(turn({ owner }))
      if ((await tx.query(recent({ owner }))).length >= perHour) return 'too many'
      await tx.run(replace({ owner, except: '' }))
      const now = await readNow(tx)
      const times = { lease: 0, created: now, expires: now + validMillis }
      await tx.run(insert({ ...newRow(link), token_hash: tokenHash, state: 'open', ...times }))
      await insertMails(tx, mails, now)
      await appendAudit(tx, audit)
      return 'added'
    })
  }

  async findLink(form: string, tokenHash: string): Promise<PasswordChange | undefined> {
    if (!isStorable(form) || !isStorable(tokenHash)) return undefined
    const [row] = await this.#client.query(this.#statements.find({ form, token_hash: tokenHash }))
    return row && toClaim(row)
  }

  async claimLink(form: string, tokenHash: string, leaseMillis: number): Promise<ChangeClaim | undefined> {
    if (!isStorable(form) || !isStorable(tokenHash)) return undefined
    const query = this.#statements.claim({ form, token_hash: tokenHash, millis: leaseMillis })
    const [row] = await this.#client.transaction((tx) => tx.query(query))
    return row && toClaim(row)
  }

  async begin(change: PasswordChange, leaseMillis: number): Promise<ChangeClaim> {
    return await this.#client.transaction(async (tx) => {
      const now = await readNow(tx)
      const lease = now + leaseMillis
      const row = {
        ...newRow(change),
        token_hash: null,
        state: 'writing' as const,
        created: now,
        expires: lease,
        lease,
      }
      await tx.run(this.#statements.insert(row))
      return { ...change, lease }
    })
  }

  async finish(claim: ChangeClaim, outcome: ChangeOutcome): Promise<number> {
    const { use, replace } = this.#statements
    return await this.#client.transaction(async (tx) => {
      await tx.run(use({ id: claim.id, lease: claim.lease }))
      await tx.run(replace({ owner: claim.owner, except: '' }))
      return await commitOutcome(tx, outcome)
    })
  }

  async release(claim: ChangeClaim, outcome: ChangeOutcome): Promise<void> {
    await this.#client.transaction(async (tx) => {
      const released = await tx.run(this.#statements.reopen({ id: claim.id, lease: claim.lease }))
      if (released === 0) return
      if (outcome.ending !== undefined) await voidLinks(tx, outcome.ending.owners, claim.id)
      await commitOutcome(tx, outcome)
    })
  }

  async abandoned(limit: number, which: 'expired' | 'all' = 'expired'): Promise<readonly ChangeClaim[]> {
    const { abandoned, underWay } = this.#statements
    return (await this.#client.query((which === 'all' ? underWay : abandoned)({ limit }))).map(toClaim)
  }

  async changedAt(owners: readonly Identity[]): Promise<Date | undefined> {
    const times: number[] = []
    for (const owner of owners) {
      const [row] = await this.#client.query(this.#statements.changedAt({ id: changedId(owner) }))
      if (row !== undefined) times.push(row.created)
    }
    return times.length === 0 ? undefined : new Date(Math.max(...times))
  }

  deleteExpired(): Promise<number> {
    return pruneInParts(this.#client, this.#statements.prune({}))
  }
}

/** One row per user records when the password was last changed; it is no link and no change under way. */
const changedId = (owner: Identity): string => `changed ${secretHash(owner)}`

/** Ends sessions as part of the transaction, and records for known devices that the password was changed. */
export async function endAfterPassword(tx: SqlTransaction, ending: SessionEnding): ReturnType<typeof endSessions> {
  const { use, changed } = statements(tx.dialect)
  if (ending.settles !== undefined) await tx.run(use(ending.settles))
  const owners = ending.owners.length > 0 ? ending.owners : ending.logins.map(formerIdentity)
  // In one order for all, so that no two transactions wait for each other.
  for (const owner of [...new Set(owners)].filter(isStorable).sort()) {
    await tx.run(changed({ id: changedId(owner), owner }))
  }
  return await endSessions(tx, ending)
}

/** The password was written otherwise: reset links of the user no longer work, but for the one with this id. */
export async function voidLinks(tx: SqlTransaction, owners: readonly Identity[], except = ''): Promise<void> {
  const { replace } = statements(tx.dialect)
  for (const owner of [...new Set(owners)].sort()) await tx.run(replace({ owner, except }))
}

/** The audit's head, which others may wait for, comes last. */
async function commitOutcome(tx: SqlTransaction, { ending, mails = [], audit }: ChangeOutcome): Promise<number> {
  const sessions = ending === undefined ? { ended: [], audit: [] } : await endAfterPassword(tx, ending)
  if (mails.length > 0) await insertMails(tx, mails, await readNow(tx))
  await appendAudit(tx, [...audit, ...sessions.audit])
  return sessions.ended.length
}

async function appendAudit(tx: SqlTransaction, audit: readonly AuditEntry[]): Promise<void> {
  if (audit.length > 0) await appendToChain(tx, audit)
}

function newRow({ id, form, owner, data }: PasswordChange): Pick<Row, 'id' | 'form' | 'owner' | 'data'> {
  assertStorable('form', form)
  return { id, form, owner, data: JSON.stringify(data) }
}

const toClaim = ({ id, form, owner, data, lease }: Row): ChangeClaim => ({
  id,
  form,
  owner: storedIdentity(owner),
  data: JSON.parse(data) as JsonObject,
  lease,
})
