import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely'
import { databaseNow, type WhenValues, whenSql } from '#storage/client/database-time.ts'
import type { SqlDialect } from '#storage/client/sql-client.ts'
import type { MailClaim, MailState } from '#storage/mail-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { pruneAtOnce } from '#storage/sql/prune.ts'
import { fixed, fixedInserts } from '#storage/sql/queries.ts'

const newColumns = ['id', 'run', 'step', 'recipient', 'subject', 'body', 'html', 'notifier', 'due', 'updated'] as const

export type NewMailRow = {
  readonly [K in (typeof newColumns)[number]]: K extends 'due' | 'updated'
    ? number
    : K extends 'step'
      ? number | null
      : K extends 'run' | 'html' | 'notifier'
        ? string | null
        : string
}

export type ClaimedMailRow = NewMailRow & { readonly attempt: number; readonly fence: number }

const summaryColumns = ['id', 'run', 'step', 'recipient', 'subject', 'state', 'attempt', 'error', 'updated'] as const

export interface MailSummaryRow {
  readonly id: string
  readonly run: string | null
  readonly step: number | null
  readonly recipient: string
  readonly subject: string
  readonly state: 'queued' | 'sent' | 'failed'
  readonly attempt: number
  readonly error: string | null
  readonly updated: number
  readonly is_unknown: number
}

/** Handed over by somebody who never told what came of it. */
const isUnknown = (now: RawBuilder<number>): Expression<SqlBool> =>
  sql<boolean>`(state = 'queued' and handed_over is not null and lease_until <= ${now})`

/** Statements that move mails from state to state. */
export const mailStatements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  const queued = sql.lit<'queued'>('queued')
  const zero = sql.lit(0)
  return {
    insert: fixedInserts<NewMailRow>(dialect, newColumns, (db, rows) =>
      db
        .insertInto('mails')
        .values(rows.map((row) => ({ ...row, state: queued, attempt: zero, fence: zero, lease_until: zero })))
        .onConflict((conflict) => conflict.column('id').doNothing()),
    ),
    claim: fixed<{ limit: number; lease: number }, ClaimedMailRow>(dialect, (db, at) =>
      db
        .with('free', (query) =>
          query
            .selectFrom('mails')
            .select('id')
            .where('state', '=', queued)
            .where('due', '<=', now)
            .where('lease_until', '<=', now)
            .where('handed_over', 'is', null)
            .orderBy('due')
            .orderBy('id')
            .limit(at('limit'))
            .$if(dialect === 'postgres', (locked) => locked.forUpdate().skipLocked()),
        )
        .updateTable('mails')
        .set((eb) => ({
          fence: eb('fence', '+', 1),
          attempt: eb('attempt', '+', 1),
          lease_until: sql<number>`${now} + ${at('lease')}`,
        }))
        .where('id', 'in', (query) => query.selectFrom('free').select('id'))
        .returning([...newColumns, 'attempt', 'fence']),
    ),
    handOver: fixed<MailClaim, unknown>(dialect, (db, at) =>
      db
        .updateTable('mails')
        .set({ handed_over: now, updated: now })
        .where('id', '=', at('id'))
        .where('fence', '=', at('fence'))
        .where('state', '=', queued),
    ),
    sent: fixed<MailClaim, unknown>(dialect, (db, at) =>
      db
        .updateTable('mails')
        .set({ state: 'sent', body: '', html: null, error: null, updated: now })
        .where('id', '=', at('id'))
        .where('fence', '=', at('fence'))
        .where('state', '=', queued),
    ),
    again: fixed<MailClaim & WhenValues & { error: string }, unknown>(dialect, (db, at) =>
      db
        .updateTable('mails')
        .set({
          due: whenSql(now, at('due_at'), at('due_in')),
          handed_over: null,
          lease_until: 0,
          error: at('error'),
          updated: now,
        })
        .where('id', '=', at('id'))
        .where('fence', '=', at('fence'))
        .where('state', '=', queued),
    ),
    giveUp: fixed<MailClaim & { error: string }, unknown>(dialect, (db, at) =>
      db
        .updateTable('mails')
        .set({ state: 'failed', handed_over: null, error: at('error'), updated: now })
        .where('id', '=', at('id'))
        .where('fence', '=', at('fence'))
        .where('state', '=', queued),
    ),
    unknown: fixed<MailClaim & { error: string }, unknown>(dialect, (db, at) =>
      db
        .updateTable('mails')
        .set({ handed_over: now, lease_until: 0, error: at('error'), updated: now })
        .where('id', '=', at('id'))
        .where('fence', '=', at('fence'))
        .where('state', '=', queued),
    ),
    retry: fixed<{ id: string }, unknown>(dialect, (db, at) =>
      db
        .updateTable('mails')
        .set((eb) => ({
          state: queued,
          handed_over: null,
          fence: eb('fence', '+', 1),
          attempt: 0,
          due: now,
          lease_until: 0,
          updated: now,
        }))
        .where('id', '=', at('id'))
        .where((eb) => eb.or([eb('state', '=', 'failed'), isUnknown(now)])),
    ),
    get: fixed<{ id: string }, MailSummaryRow>(dialect, (db, at) =>
      db
        .selectFrom('mails')
        .select([...summaryColumns, isUnknownNumber(now)])
        .where('id', '=', at('id')),
    ),
    figures: fixed<object, { state: string; is_unknown: number; count: number; age: number }>(dialect, (db) =>
      db
        .selectFrom('mails')
        .select(['state', isUnknownNumber(now)])
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .select(sql<number>`${now} - min(due)`.as('age'))
        .where('state', 'in', [queued, sql.lit<'failed'>('failed')])
        .groupBy(['state', sql.ref('is_unknown')]),
    ),
    list: (state: MailState) =>
      fixed<{ after: string; limit: number }, MailSummaryRow>(dialect, (db, at) =>
        db
          .selectFrom('mails')
          .select([...summaryColumns, isUnknownNumber(now)])
          .where(inState(state, now))
          .where('id', '>', at('after'))
          .orderBy('id')
          .limit(at('limit')),
      ),
    pruneEnded: prune(dialect, sql<boolean>`state <> 'queued'`),
    pruneUnknown: prune(dialect, isUnknown(now)),
  }
})

const inState = (state: MailState, now: RawBuilder<number>): Expression<SqlBool> => {
  if (state === 'unknown') return isUnknown(now)
  return state === 'queued'
    ? sql<boolean>`(state = 'queued' and not ${isUnknown(now)})`
    : sql<boolean>`state = ${state}`
}

const isUnknownNumber = (now: RawBuilder<number>) =>
  sql<number>`case when ${isUnknown(now)} then 1 else 0 end`.as('is_unknown')

const prune = (dialect: SqlDialect, which: Expression<SqlBool>) =>
  fixed<{ before: number }, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('mails')
      .where('id', 'in', (query) =>
        query.selectFrom('mails').select('id').where(which).where('updated', '<', at('before')).limit(pruneAtOnce),
      ),
  )
