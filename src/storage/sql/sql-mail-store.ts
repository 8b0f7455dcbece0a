import type { AuditEntry } from '#domain/audit.ts'
import { GatewayError } from '#kernel/errors.ts'
import { readNow, whenValues } from '#storage/client/database-time.ts'
import type { SqlClient, SqlTransaction } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable, storable } from '#storage/client/text-keys.ts'
import type {
  ClaimedMail,
  MailClaim,
  MailFigures,
  MailPage,
  MailQuery,
  MailStore,
  MailSummary,
  NewMail,
} from '#storage/mail-store.ts'
import { appendToChain } from '#storage/sql/audit-chain.ts'
import {
  type ClaimedMailRow,
  type MailSummaryRow,
  mailStatements,
  type NewMailRow,
} from '#storage/sql/mail-statements.ts'
import { pruneInParts } from '#storage/sql/prune.ts'
import { optionalText } from '#storage/sql/run-records.ts'
import type { When } from '#storage/timer-store.ts'

const maxPage = 500

export async function insertMails(tx: SqlTransaction, mails: readonly NewMail[], now: number): Promise<void> {
  const rows = mails.map(({ id, run, step, recipient, subject, text, html, notifier }): NewMailRow => {
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
  for (const query of mailStatements(tx.dialect).insert(rows)) await tx.run(query)
}

export class SqlMailStore implements MailStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof mailStatements> {
    return mailStatements(this.#client.dialect)
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

  async handOver({ id, fence }: MailClaim): Promise<boolean> {
    return (await this.#client.transaction((tx) => tx.run(this.#statements.handOver({ id, fence })))) > 0
  }

  async unknown({ id, fence }: MailClaim, error: string): Promise<boolean> {
    const query = this.#statements.unknown({ id, fence, error: storable(error) })
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }

  async list({ state, after = '', limit }: MailQuery): Promise<MailPage> {
    if (!isStorable(after)) throw new GatewayError('BAD_REQUEST', 'not a page of mails')
    const most = Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage))
    const rows = await this.#client.query(this.#statements.list(state)({ after, limit: most + 1 }))
    const mails = rows.slice(0, most).map(toSummary)
    const last = mails.at(-1)
    return rows.length > most && last !== undefined ? { mails, next: last.id } : { mails }
  }

  async get(id: string): Promise<MailSummary | undefined> {
    if (!isStorable(id)) return undefined
    const [row] = await this.#client.query(this.#statements.get({ id }))
    return row && toSummary(row)
  }

  async retry(id: string, audit: readonly AuditEntry[]): Promise<void> {
    if (!isStorable(id)) throw new GatewayError('NOT_FOUND', 'no such mail')
    await this.#client.transaction(async (tx) => {
      if ((await tx.run(this.#statements.retry({ id }))) > 0) {
        if (audit.length > 0) await appendToChain(tx, audit)
        return
      }
      const [row] = await tx.query(this.#statements.get({ id }))
      if (row === undefined) throw new GatewayError('NOT_FOUND', `no mail ${id}`)
      throw new GatewayError('CONFLICT', `the mail ${id} is ${toSummary(row).state}`)
    })
  }

  async figures(): Promise<MailFigures> {
    const rows = await this.#client.query(this.#statements.figures({}))
    const of = (state: string, isUnknown = 0) => rows.find((row) => row.state === state && row.is_unknown === isUnknown)
    const queued = of('queued')
    const ended = { unknown: of('queued', 1)?.count ?? 0, failed: of('failed')?.count ?? 0 }
    if (queued === undefined) return { queued: 0, ...ended }
    return { queued: queued.count, ...ended, ...(queued.age < 0 ? {} : { oldestMillis: queued.age }) }
  }

  async prune(before: Date): Promise<number> {
    const values = { before: before.getTime() }
    const { pruneEnded, pruneUnknown } = this.#statements
    return (
      (await pruneInParts(this.#client, pruneEnded(values))) + (await pruneInParts(this.#client, pruneUnknown(values)))
    )
  }
}

const toSummary = ({ run, step, error, updated, is_unknown, state, ...row }: MailSummaryRow): MailSummary => ({
  ...row,
  state: is_unknown === 1 ? 'unknown' : state,
  updated: new Date(updated),
  ...(run === null ? {} : { run }),
  ...(step === null ? {} : { step }),
  ...(error === null ? {} : { error }),
})

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
}: ClaimedMailRow): ClaimedMail => ({
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
