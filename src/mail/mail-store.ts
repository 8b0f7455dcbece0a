import { appendToChain } from '#audit/store/audit-chain.ts'
import { type DueValues, dueText, dueValues, readNow } from '#database/database-time.ts'
import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import {
  columns,
  type DialectText,
  deletedAtOnce,
  deleteInParts,
  RowInsert,
  type Statement,
  statement,
  withoutNulls,
} from '#database/statement.ts'
import { assertStorable, isStorable, optionalText, storable } from '#database/text-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { When } from '#kernel/time.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { ClaimedMail, MailClaim, MailKind, MailLink, MailState, MailSummary, NewMail } from '#sdk/mail/new-mail.ts'

const maxPage = 500

interface MailRow extends Pick<NewMail, 'id' | 'recipient' | 'subject'> {
  readonly run: string | null
  readonly step: number | null
  readonly body: string
  readonly html: string | null
  /** JSON. */
  readonly links: string | null
  readonly notifier: string | null
  readonly state: Exclude<MailState, 'unknown'>
  readonly attempt: number
  readonly due: number
  readonly fence: number
  readonly leaseUntil: number
  readonly error: string | null
  readonly updated: number
}

const content = ['id', 'run', 'step', 'recipient', 'subject', 'body', 'html', 'links', 'notifier'] as const
const added = [...content, 'due', 'updated', 'state', 'attempt', 'fence', 'leaseUntil'] as const
const claimed = [...content, 'due', 'attempt', 'fence'] as const
const listed = ['id', 'run', 'step', 'recipient', 'subject', 'state', 'attempt', 'error', 'updated'] as const
type ClaimedRow = Pick<MailRow, (typeof claimed)[number]>
type ListedRow = Pick<MailRow, (typeof listed)[number]> & { readonly isUnknown: number }

interface MailQuery {
  readonly state: MailState
  readonly after?: string | undefined
  /** At most 500. */
  readonly limit: number
}

interface MailPage {
  /** Ordered by id. */
  readonly mails: readonly MailSummary[]
  /** Where the next page starts; absent on the last one. */
  readonly next?: string
}

export interface MailFigures {
  /** Includes mails that are being sent. */
  readonly queued: number
  readonly unknown: number
  readonly failed: number
  /** How long the oldest due mail has been due. */
  readonly oldestMillis?: number
}

/** The outbox of mails. Mails of a run are added with its commit: see RunEffects. */
export class MailStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  async add(mails: readonly NewMail[]): Promise<void> {
    await this.#client.transaction(async (tx) => insertMails(tx, mails, await readNow(tx)))
  }

  /** Leases the earliest mails, of one kind or of all, that are due and not leased. Concurrent callers never get the same one. */
  async claim(limit: number, leaseMillis: number, kind: MailKind | 'any' = 'any'): Promise<readonly ClaimedMail[]> {
    const rows = await this.#client.transaction((tx) => claims[kind].all(tx, { limit, lease: leaseMillis }))
    return rows.sort((a, b) => a.due - b.due).map(toClaimed)
  }

  /**
   * Must be called before the end of the mail is sent to the recipient's server. From then on no other worker sends it:
   * if this worker dies, the mail is `unknown` once the lease has expired. False when another worker has claimed it.
   */
  handOver({ id, fence }: MailClaim): Promise<boolean> {
    return this.#update(startHandOver, { id, fence })
  }

  /** Deletes the text and records the mail as sent. False if another worker has claimed it. */
  sent({ id, fence }: MailClaim): Promise<boolean> {
    return this.#update(markSent, { id, fence })
  }

  /** Queues the mail again for that time, or gives it up. False when another worker has claimed it. */
  failed({ id, fence }: MailClaim, error: string, retry?: When): Promise<boolean> {
    const values = { id, fence, error: storable(error) }
    if (retry === undefined) return this.#update(giveUp, values)
    return this.#update(queueAgain, { ...values, ...dueValues(retry) })
  }

  /** The mail may have arrived. False when another worker has claimed it. */
  unknown({ id, fence }: MailClaim, error: string): Promise<boolean> {
    return this.#update(markUnknown, { id, fence, error: storable(error) })
  }

  async #update<P extends object>(change: Statement<P>, values: P): Promise<boolean> {
    return (await this.#client.transaction((tx) => change.run(tx, values))) > 0
  }

  /** Throws BAD_REQUEST for an `after` that is not the `next` of a page. */
  async list({ state, after = '', limit }: MailQuery): Promise<MailPage> {
    if (!isStorable(after)) throw new GatewayError('BAD_REQUEST', 'not a page of mails')
    const most = Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage))
    const rows = await listInState[state].all(this.#client, { after, limit: most + 1 })
    const mails = rows.slice(0, most).map(toSummary)
    const last = mails.at(-1)
    return rows.length > most && last !== undefined ? { mails, next: last.id } : { mails }
  }

  async get(id: string): Promise<MailSummary | undefined> {
    if (!isStorable(id)) return undefined
    const row = await findById.first(this.#client, { id })
    return row && toSummary(row)
  }

  /** Queues a `failed` or `unknown` mail again. Throws NOT_FOUND, and CONFLICT for a mail in another state. */
  async retry(id: string, audit: readonly AuditEntry[]): Promise<void> {
    if (!isStorable(id)) throw new GatewayError('NOT_FOUND', 'no such mail')
    await this.#client.transaction(async (tx) => {
      if ((await retry.run(tx, { id })) > 0) {
        if (audit.length > 0) await appendToChain(tx, audit)
        return
      }
      const row = await findById.first(tx, { id })
      if (row === undefined) throw new GatewayError('NOT_FOUND', `no mail ${id}`)
      throw new GatewayError('CONFLICT', `the mail ${id} is ${toSummary(row).state}`)
    })
  }

  async figures(): Promise<MailFigures> {
    const rows = await countByState.all(this.#client, {})
    const of = (state: string, isUnknown = 0) => rows.find((row) => row.state === state && row.isUnknown === isUnknown)
    const queued = of('queued')
    const ended = { unknown: of('queued', 1)?.count ?? 0, failed: of('failed')?.count ?? 0 }
    if (queued === undefined) return { queued: 0, ...ended }
    return { queued: queued.count, ...ended, ...(queued.age < 0 ? {} : { oldestMillis: queued.age }) }
  }

  /** Deletes mails that were sent, given up or `unknown` before then; returns how many. */
  async prune(before: Date): Promise<number> {
    let pruned = 0
    for (const prune of [pruneEnded, pruneUnknown]) {
      pruned += await deleteInParts(this.#client, prune, { before: before.getTime() })
    }
    return pruned
  }
}

export async function insertMails(tx: DatabaseTransaction, mails: readonly NewMail[], now: number): Promise<void> {
  const rows = mails.map(({ id, run, step, recipient, subject, text, html, links, notifier }) => {
    assertStorable('id of the mail', id)
    return {
      id,
      run: optionalText(run),
      step: step ?? null,
      recipient: storable(recipient),
      subject: storable(subject),
      body: storable(text),
      html: optionalText(html),
      links: links === undefined ? null : storable(JSON.stringify(links)),
      notifier: optionalText(notifier),
      due: now,
      updated: now,
      state: 'queued' as const,
      attempt: 0,
      fence: 0,
      leaseUntil: 0,
    }
  })
  insert.run(tx, rows)
}

const toSummary = ({ updated, isUnknown, state, ...row }: ListedRow): MailSummary => ({
  ...withoutNulls(row),
  state: isUnknown === 1 ? 'unknown' : state,
  updated: new Date(updated),
})

const toClaimed = ({ due: _, body, links, ...row }: ClaimedRow): ClaimedMail => ({
  ...withoutNulls(row),
  text: body,
  ...(links === null ? {} : { links: JSON.parse(links) as readonly MailLink[] }),
})

const insert = new RowInsert<Pick<MailRow, (typeof added)[number]>>('mails', added, 'on conflict (id) do nothing')

const claimWhere = (ofKind: string) =>
  statement<{ limit: number; lease: number }, ClaimedRow>(
    (on) => `with free as
     (select id from mails where state = 'queued' and due <= ${on.now} and lease_until <= ${on.now} and handed_over is null
        ${ofKind}
      order by due, id limit :limit ${on.forUpdateSkipLocked})
   update mails set fence = fence + 1, attempt = attempt + 1, lease_until = ${on.now} + :lease
   where id in (select id from free) returning ${columns(claimed)}`,
  )
const claims: Readonly<Record<MailKind | 'any', ReturnType<typeof claimWhere>>> = {
  any: claimWhere(''),
  mail: claimWhere('and links is null'),
  'channel message': claimWhere('and links is not null'),
}

const isClaimed = `id = :id and fence = :fence and state = 'queued'`
const startHandOver = statement<MailClaim>(
  (on) => `update mails set handed_over = ${on.now}, updated = ${on.now} where ${isClaimed}`,
)
const markSent = statement<MailClaim>(
  (on) =>
    `update mails set state = 'sent', body = '', html = null, links = null, error = null, updated = ${on.now} where ${isClaimed}`,
)
const queueAgain = statement<MailClaim & DueValues & { error: string }>(
  (
    on,
  ) => `update mails set due = ${dueText(on)}, handed_over = null, lease_until = 0, error = :error, updated = ${on.now}
   where ${isClaimed}`,
)
const giveUp = statement<MailClaim & { error: string }>(
  (on) =>
    `update mails set state = 'failed', handed_over = null, error = :error, updated = ${on.now} where ${isClaimed}`,
)
const markUnknown = statement<MailClaim & { error: string }>(
  (on) =>
    `update mails set handed_over = ${on.now}, lease_until = 0, error = :error, updated = ${on.now} where ${isClaimed}`,
)

/** The worker that handed it over died before it could record the result. */
const isUnknown = (on: DialectText): string =>
  `(state = 'queued' and handed_over is not null and lease_until <= ${on.now})`
const isUnknownColumn = (on: DialectText): string => `case when ${isUnknown(on)} then 1 else 0 end as "isUnknown"`

const retry = statement<{ id: string }>(
  (on) => `update mails set state = 'queued', handed_over = null, fence = fence + 1, attempt = 0, due = ${on.now},
     lease_until = 0, updated = ${on.now}
   where id = :id and (state = 'failed' or ${isUnknown(on)})`,
)

const findById = statement<{ id: string }, ListedRow>(
  (on) => `select ${columns(listed)}, ${isUnknownColumn(on)} from mails where id = :id`,
)
const listWhere = (condition: (on: DialectText) => string) =>
  statement<{ after: string; limit: number }, ListedRow>(
    (on) => `select ${columns(listed)}, ${isUnknownColumn(on)} from mails
     where ${condition(on)} and id > :after order by id limit :limit`,
  )
const listInState: Readonly<Record<MailState, ReturnType<typeof listWhere>>> = {
  queued: listWhere((on) => `(state = 'queued' and not ${isUnknown(on)})`),
  unknown: listWhere(isUnknown),
  failed: listWhere(() => `state = 'failed'`),
  sent: listWhere(() => `state = 'sent'`),
}
const countByState = statement<object, { state: string; isUnknown: number; count: number; age: number }>(
  (on) => `select state, ${isUnknownColumn(on)}, count(*) as count, ${on.now} - min(due) as age
   from mails where state in ('queued', 'failed') group by state, "isUnknown"`,
)

const pruneWhere = (condition: (on: DialectText) => string) =>
  statement<{ before: number }>(
    (on) => `delete from mails where id in
       (select id from mails where ${condition(on)} and updated < :before limit ${deletedAtOnce})`,
  )
const pruneEnded = pruneWhere(() => `state <> 'queued'`)
const pruneUnknown = pruneWhere(isUnknown)
