import { sql } from 'kysely'
import type { ClaimedMail, MailClaim, MailFigures, MailStore, NewMail } from '#storage/mail-store.ts'
import { databaseNow, readNow, type WhenValues, whenSql, whenValues } from '#storage/sql/database-time.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { pruneAtOnce, pruneInParts } from '#storage/sql/prune.ts'
import { fixed, fixedInserts } from '#storage/sql/queries.ts'
import { optionalText } from '#storage/sql/run-records.ts'
import type { SqlClient, SqlTransaction } from '#storage/sql/sql-client.ts'
import { assertStorable, storable } from '#storage/sql/text-keys.ts'
import type { When } from '#storage/timer-store.ts'

const newColumns = ['id', 'run', 'step', 'recipient', 'subject', 'body', 'html', 'notifier', 'due', 'updated'] as const

type NewRow = {
  readonly [K in (typeof newColumns)[number]]: K extends 'due' | 'updated'
    ? number
    : K extends 'step'
      ? number | null
      : K extends 'run' | 'html' | 'notifier'
        ? string | null
        : string
}

type ClaimedRow = NewRow & { readonly attempt: number; readonly fence: number }

const statements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  const queued = sql.lit<'queued'>('queued')
  const zero = sql.lit(0)
  return {
    insert: fixedInserts<NewRow>(dialect, newColumns, (db, rows) =>
      db
        .insertInto('mails')
        .values(rows.map((row) => ({ ...row, state: queued, attempt: zero, fence: zero, lease_until: zero })))
        .onConflict((conflict) => conflict.column('id').doNothing()),
    ),
    claim: fixed<{ limit: number; lease: number }, ClaimedRow>(dialect, (db, at) =>
      db
        .with('free', (query) =>
          query
            .selectFrom('mails')
            .select('id')
            .where('state', '=', queued)
            .where('due', '<=', now)
            .where('lease_until', '<=', now)
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
        .set({ due: whenSql(now, at('due_at'), at('due_in')), lease_until: 0, error: at('error'), updated: now })
        .where('id', '=', at('id'))
        .where('fence', '=', at('fence'))
        .where('state', '=', queued),
    ),
    giveUp: fixed<MailClaim & { error: string }, unknown>(dialect, (db, at) =>
      db
        .updateTable('mails')
        .set({ state: 'failed', error: at('error'), updated: now })
        .where('id', '=', at('id'))
        .where('fence', '=', at('fence'))
        .where('state', '=', queued),
    ),
    figures: fixed<object, { state: string; count: number; age: number }>(dialect, (db) =>
      db
        .selectFrom('mails')
        .select('state')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .select(sql<number>`${now} - min(due)`.as('age'))
        .where('state', 'in', [queued, sql.lit<'failed'>('failed')])
        .groupBy('state'),
    ),
    prune: fixed<{ before: number }, unknown>(dialect, (db, at) =>
      db
        .deleteFrom('mails')
        .where('id', 'in', (query) =>
          query
            .selectFrom('mails')
            .select('id')
            .where('state', '<>', queued)
            .where('updated', '<', at('before'))
            .limit(pruneAtOnce),
        ),
    ),
  }
})

export async function insertMails(tx: SqlTransaction, mails: readonly NewMail[], now: number): Promise<void> {
  const rows = mails.map(({ id, run, step, recipient, subject, text, html, notifier }): NewRow => {
    assertStorable('id of the mail', id)
    return {
      id,
      run: optionalText(run),
      step: step ?? null,
      recipient: storable(recipient),
      subject: storable(subject),
      body: storable(text),
      html: optionalText(html),
      notifier: optionalText(notifier),
      due: now,
      updated: now,
    }
  })
  for (const query of statements(tx.dialect).insert(rows)) await tx.run(query)
}

export class SqlMailStore implements MailStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof statements> {
    return statements(this.#client.dialect)
  }

  async add(mails: readonly NewMail[]): Promise<void> {
    await this.#client.transaction(async (tx) => insertMails(tx, mails, await readNow(tx)))
  }

  async claim(limit: number, leaseMillis: number): Promise<readonly ClaimedMail[]> {
    const query = this.#statements.claim({ limit, lease: leaseMillis })
    const rows = await this.#client.transaction((tx) => tx.query(query))
    return rows.sort((a, b) => a.due - b.due).map(toClaimed)
  }

  async sent({ id, fence }: MailClaim): Promise<boolean> {
    return (await this.#client.transaction((tx) => tx.run(this.#statements.sent({ id, fence })))) > 0
  }

  async failed({ id, fence }: MailClaim, error: string, retry?: When): Promise<boolean> {
    const { again, giveUp } = this.#statements
    const values = { id, fence, error: storable(error) }
    const query = retry === undefined ? giveUp(values) : again({ ...values, ...whenValues(retry) })
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }

  async figures(): Promise<MailFigures> {
    const rows = await this.#client.query(this.#statements.figures({}))
    const queued = rows.find(({ state }) => state === 'queued')
    const failed = rows.find(({ state }) => state === 'failed')?.count ?? 0
    if (queued === undefined) return { queued: 0, failed }
    return { queued: queued.count, failed, ...(queued.age < 0 ? {} : { oldestMillis: queued.age }) }
  }

  prune(before: Date): Promise<number> {
    return pruneInParts(this.#client, this.#statements.prune({ before: before.getTime() }))
  }
}

const toClaimed = ({
  id,
  run,
  step,
  recipient,
  subject,
  body,
  html,
  notifier,
  attempt,
  fence,
}: ClaimedRow): ClaimedMail => ({
  id,
  fence,
  attempt,
  recipient,
  subject,
  text: body,
  ...(run === null ? {} : { run }),
  ...(step === null ? {} : { step }),
  ...(html === null ? {} : { html }),
  ...(notifier === null ? {} : { notifier }),
})
