import type { NewRequestMessage, RequestMessage } from '#domain/approval.ts'
import { storedIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { DatabaseReader, DatabaseTransaction } from '#storage/client/sql-client.ts'
import { columns, inserted, statement } from '#storage/client/statement.ts'
import { isStorable, storable } from '#storage/client/text-keys.ts'

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
  return (await list.all(reader, { run })).map(({ id, kind, author, authorIdentity, at, body }) => ({
    id,
    kind,
    by: { login: author, identity: storedIdentity(authorIdentity) },
    at: new Date(at),
    text: body,
  }))
}

const stored = ['id', 'run', 'kind', 'author', 'authorIdentity', 'at', 'body'] as const
const insert = statement<MessageRow>(`insert into request_messages ${inserted(stored)}`)
const countOfRun = statement<{ run: string }, { count: number }>(
  `select count(*) as count from request_messages where run = :run`,
)
const list = statement<{ run: string }, MessageRow>(
  `select ${columns(stored)} from request_messages where run = :run order by id limit ${maxMessages}`,
)
