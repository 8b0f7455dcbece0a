import { type RawBuilder, sql } from 'kysely'
import { databaseNow } from '#storage/client/database-time.ts'
import { reservationScope, type StoredInvitationState } from '#storage/registration-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { pruneAtOnce } from '#storage/sql/prune.ts'
import { fixed } from '#storage/sql/queries.ts'
import type { InvitationTable, RegistrationSchema } from '#storage/sql/registration-schema.ts'

/** How long an invitation whose time has passed is still listed. */
const keptMillis = 90 * 24 * 3600_000

const invitationColumns = [
  'id',
  'form',
  'email',
  'attributes',
  'invited_by',
  'state',
  'created',
  'expires',
  'sent',
] as const

export type InvitationRow = Pick<InvitationTable, (typeof invitationColumns)[number]>
export type PendingRow = RegistrationSchema['pending_registrations']

/** A reservation that still counts: its time has not passed, or the run that it is for is under way. */
const isHeld = (now: RawBuilder<number>): RawBuilder<boolean> => sql<boolean>`(
  reservations.expires > ${now}
  or exists (select 1 from runs where runs.id = reservations.run and runs.ended is null)
  or exists (select 1 from idempotency join runs on runs.id = idempotency.run
    where idempotency.scope = ${sql.lit(reservationScope)} and idempotency.key = reservations.owner
      and runs.ended is null))`

export const registrationStatements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  return {
    /** A row comes back where another holds the key. */
    heldByOther: fixed<{ key: string; owner: string }, { key: string }>(dialect, (db, at) => ({
      compile: () =>
        sql<{ key: string }>`
          select key from reservations
          where key = ${at('key')} and owner <> ${at('owner')} and ${isHeld(now)}`.compile(db),
    })),
    /** A row comes back where the key is the owner's now. */
    reserve: fixed<{ key: string; owner: string; millis: number }, { owner: string }>(dialect, (db, at) => ({
      compile: () =>
        sql<{ owner: string }>`
          insert into reservations (key, owner, expires)
          values (${at('key')}, ${at('owner')}, ${now} + cast(${at('millis')} as bigint))
          on conflict (key) do update set owner = excluded.owner, expires = excluded.expires,
            run = case when reservations.owner = excluded.owner then reservations.run else null end
          where reservations.owner = excluded.owner or not ${isHeld(now)}
          returning owner`.compile(db),
    })),
    holdForRun: fixed<{ owner: string; run: string; millis: number }, unknown>(dialect, (db, at) => ({
      compile: () =>
        sql`update reservations set run = ${at('run')}, expires = ${now} + cast(${at('millis')} as bigint)
          where owner = ${at('owner')}`.compile(db),
    })),
    release: fixed<{ owner: string }, unknown>(dialect, (db, at) =>
      db.deleteFrom('reservations').where('owner', '=', at('owner')).where('run', 'is', null),
    ),
    addPending: fixed<PendingRow, unknown>(dialect, (db, at) =>
      db.insertInto('pending_registrations').values({
        id: at('id'),
        form: at('form'),
        token_hash: at('token_hash'),
        sealed: at('sealed'),
        expires: at('expires'),
      }),
    ),
    findPending: fixed<{ form: string; token_hash: string }, PendingRow>(dialect, (db, at) =>
      db
        .selectFrom('pending_registrations')
        .selectAll()
        .where('token_hash', '=', at('token_hash'))
        .where('form', '=', at('form'))
        .where('expires', '>', now),
    ),
    removePending: fixed<{ id: string }, unknown>(dialect, (db, at) =>
      db.deleteFrom('pending_registrations').where('id', '=', at('id')),
    ),
    addInvitation: fixed<Omit<InvitationTable, 'state' | 'sent'>, unknown>(dialect, (db, at) =>
      db.insertInto('invitations').values({
        id: at('id'),
        form: at('form'),
        token_hash: at('token_hash'),
        email: at('email'),
        attributes: at('attributes'),
        invited_by: at('invited_by'),
        state: 'open',
        created: at('created'),
        expires: at('expires'),
        sent: 1,
      }),
    ),
    findInvitation: fixed<{ form: string; token_hash: string }, InvitationRow>(dialect, (db, at) =>
      db
        .selectFrom('invitations')
        .select(invitationColumns)
        .where('token_hash', '=', at('token_hash'))
        .where('form', '=', at('form'))
        .where('expires', '>', now),
    ),
    getInvitation: fixed<{ form: string; id: string }, InvitationRow>(dialect, (db, at) =>
      db.selectFrom('invitations').select(invitationColumns).where('id', '=', at('id')).where('form', '=', at('form')),
    ),
    listInvitations: fixed<{ form: string; after: string; limit: number }, InvitationRow>(dialect, (db, at) =>
      db
        .selectFrom('invitations')
        .select(invitationColumns)
        .where('form', '=', at('form'))
        .where('id', '<', at('after'))
        .orderBy('id', 'desc')
        .limit(at('limit')),
    ),
    renewInvitation: fixed<{ id: string; token_hash: string; expires: number }, unknown>(dialect, (db, at) =>
      db
        .updateTable('invitations')
        .set((eb) => ({ token_hash: at('token_hash'), expires: at('expires'), sent: eb('sent', '+', 1) }))
        .where('id', '=', at('id'))
        .where('state', '=', 'open'),
    ),
    moveInvitation: fixed<{ id: string; from: StoredInvitationState; to: StoredInvitationState }, unknown>(
      dialect,
      (db, at) =>
        db
          .updateTable('invitations')
          .set({ state: at('to') })
          .where('id', '=', at('id'))
          .where('state', '=', at('from')),
    ),
    pruneReservations: fixed<object, unknown>(dialect, (db) => ({
      compile: () =>
        sql`delete from reservations where key in
          (select key from reservations where not ${isHeld(now)} limit ${sql.lit(pruneAtOnce)})`.compile(db),
    })),
    prunePending: fixed<object, unknown>(dialect, (db) =>
      db
        .deleteFrom('pending_registrations')
        .where('id', 'in', (query) =>
          query.selectFrom('pending_registrations').select('id').where('expires', '<=', now).limit(pruneAtOnce),
        ),
    ),
    pruneInvitations: fixed<object, unknown>(dialect, (db) =>
      db.deleteFrom('invitations').where('id', 'in', (query) =>
        query
          .selectFrom('invitations')
          .select('id')
          .where('expires', '<=', sql<number>`${now} - ${sql.lit(keptMillis)}`)
          .limit(pruneAtOnce),
      ),
    ),
  }
})
