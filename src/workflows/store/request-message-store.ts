import sql, { join, raw } from 'sql-template-tag'
import type { DatabaseReader, DatabaseTransaction } from '#database/sql-client.ts'
import { columns, dynamic, inserted, statement } from '#database/statement.ts'
import { isStorable, storable } from '#database/text-keys.ts'
import { storedIdentity, type UserRef } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { LatestMessage, NewRequestMessage, RequestMessage } from '#workflows/record/approval.ts'

const maxMessages = 100

interface MessageRow {
  readonly id: string
  readonly run: string
  readonly kind: RequestMessage['kind']
  readonly author: string
  readonly authorIdentity: string
  readonly at: number
  readonly body: string
}

/** Adds a message to a run that this transaction has locked. Throws CONFLICT if the run has 100. */
export async function insertMessage(
  tx: DatabaseTransaction,
  run: string,
  { id, kind, by, text }: NewRequestMessage,
  at: number,
): Promise<void> {
  const { count = 0 } = (await countOfRun.first(tx, { run })) ?? {}
  if (count >= maxMessages) {
    throw new GatewayError('CONFLICT', `the run ${run} has ${count} messages`, {
      publicText: 'There are too many messages about this request.',
    })
  }
  const author = storable(by.login)
  await insert.run(tx, { id, run, kind, author, authorIdentity: by.identity, at, body: storable(text) })
}

/** Questions and answers about a run, in order. */
export async function readMessages(reader: DatabaseReader, run: string): Promise<readonly RequestMessage[]> {
  if (!isStorable(run)) return []
  return (await list.all(reader, { run })).map((row) => ({
    id: row.id,
    kind: row.kind,
    by: authorOf(row),
    at: new Date(row.at),
    text: row.body,
  }))
}

/** Of each run that has messages, the last one. */
export async function readLatestMessages(
  reader: DatabaseReader,
  runs: readonly string[],
): Promise<ReadonlyMap<string, LatestMessage>> {
  const found = new Map<string, LatestMessage>()
  for (let start = 0; start < runs.length; start += runsAtOnce) {
    const some = runs.slice(start, start + runsAtOnce).filter(isStorable)
    if (some.length === 0) continue
    const lastOf = raw('select max(id) from request_messages other where other.run = message.run')
    const text = sql`select run, id, kind, author, author_identity as "authorIdentity", at from request_messages message
      where run in (${join(some)}) and (id = (${lastOf}) or id = (${lastOf} and other.kind = 'question')) order by run, id`
    const rows = await reader.query(dynamic<Omit<MessageRow, 'body'>>(reader.dialect, text))
    let asked: Omit<MessageRow, 'body'> | undefined
    for (const row of rows) {
      if (row.kind === 'question') asked = row
      // The question comes before its answer.
      if (asked?.run !== row.run) continue
      found.set(row.run, {
        id: row.id,
        kind: row.kind,
        by: authorOf(row),
        at: new Date(row.at),
        askedBy: authorOf(asked),
      })
    }
  }
  return found
}

const runsAtOnce = 200

const authorOf = ({ author, authorIdentity }: Pick<MessageRow, 'author' | 'authorIdentity'>): UserRef => ({
  login: author,
  identity: storedIdentity(authorIdentity),
})

const stored = ['id', 'run', 'kind', 'author', 'authorIdentity', 'at', 'body'] as const
const insert = statement<MessageRow>(`insert into request_messages ${inserted(stored)}`)
const countOfRun = statement<{ run: string }, { count: number }>(
  `select count(*) as count from request_messages where run = :run`,
)
const list = statement<{ run: string }, MessageRow>(
  `select ${columns(stored)} from request_messages where run = :run order by id limit ${maxMessages}`,
)
