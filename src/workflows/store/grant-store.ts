import { type DueValues, dueText, dueValues, readNow, timeOf } from '#database/database-time.ts'
import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { columns, dateOrNull, inserted, statement, withoutNulls } from '#database/statement.ts'
import { assertStorable, isStorable, lookupKey, storable } from '#database/text-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { When } from '#kernel/time.ts'
import type { Grant, GrantRevocation, NewGrant } from '#sdk/workflow/grant.ts'

interface GrantRow extends Pick<Grant, 'id' | 'target' | 'subject' | 'kind' | 'name' | 'state'> {
  readonly subjectKey: string
  readonly nameKey: string
  readonly granted: number
  readonly expires: number
  readonly run: string | null
  readonly ended: number | null
  readonly removal: string | null
}

const given = ['id', 'target', 'subject', 'kind', 'name', 'granted', 'expires', 'run', 'state'] as const
const stored = [...given, 'ended', 'removal'] as const
type StoredGrant = Pick<GrantRow, (typeof stored)[number]>

/**
 * At most one grant of the same access is active. A grant is its own timer: it is due when it is active and has expired.
 * The run that removes the access starts in the transaction that revokes the grant: see RunEffects.
 */
export class GrantStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /** If the access is already granted, that grant expires at the later of both times. */
  async add(grants: readonly NewGrant[]): Promise<void> {
    await this.#client.transaction(async (tx) => insertGrants(tx, grants, await readNow(tx)))
  }

  async get(id: string): Promise<Grant | undefined> {
    if (!isStorable(id)) return undefined
    const row = await findById.first(this.#client, { id })
    return row && fromRow(row)
  }

  /** The active grants of a user, at most 500. */
  async ofSubject(subject: string): Promise<readonly Grant[]> {
    if (!isStorable(subject)) return []
    return (await findBySubject.all(this.#client, { subjectKey: lookupKey(subject) })).map(fromRow)
  }

  /** The revoked grants of a user, the latest grant first, at most 100. */
  async endedOf(subject: string): Promise<readonly Grant[]> {
    if (!isStorable(subject)) return []
    return (await findEnded.all(this.#client, { subjectKey: lookupKey(subject) })).map(fromRow)
  }

  /** The active grants that have expired, earliest first. */
  async due(limit: number): Promise<readonly Grant[]> {
    return (await findDue.all(this.#client, { limit })).map(fromRow)
  }

  /** Undefined if it is no longer active. A grant is never shortened. */
  async extend(id: string, expires: When): Promise<Grant | undefined> {
    if (!isStorable(id)) return undefined
    const row = await this.#client.transaction((tx) => extend.first(tx, { id, ...dueValues(expires) }))
    return row && fromRow(row)
  }

  /** Undefined for all callers but the first. */
  async revoke(revocation: GrantRevocation): Promise<Grant | undefined> {
    const row = await this.#client.transaction((tx) => revokeGrant(tx, revocation))
    return row && fromRow(row)
  }
}

/** If the access is already granted, that grant expires at the later of both times. */
export async function insertGrants(tx: DatabaseTransaction, grants: readonly NewGrant[], now: number): Promise<void> {
  // One by one: PostgreSQL does not let one statement update the same row twice.
  for (const { id, target, subject, kind, name, expires, run } of grants) {
    assertStorable('login', subject)
    insert.send(tx, {
      id,
      target: storable(target),
      subject,
      subjectKey: lookupKey(subject),
      kind,
      name: storable(name),
      nameKey: lookupKey(storable(name)),
      granted: now,
      expires: timeOf(expires, now),
      run: run ?? null,
      state: 'active',
    })
  }
}

/** Throws CONFLICT if one of them is no longer active, or not due although it has to be. */
export async function revokeGrants(tx: DatabaseTransaction, revocations: readonly GrantRevocation[]): Promise<void> {
  for (const revocation of revocations) {
    if ((await revokeGrant(tx, revocation)) !== undefined) continue
    throw new GatewayError('CONFLICT', `the grant ${revocation.grant} is not active, or not due`, {
      publicText: 'This access has already ended.',
    })
  }
}

async function revokeGrant(
  tx: DatabaseTransaction,
  { grant, onlyDue, removal }: GrantRevocation,
): Promise<StoredGrant | undefined> {
  if (!isStorable(grant)) return undefined
  return await revoke.first(tx, { id: grant, anyway: onlyDue ? 0 : 1, removal: removal ?? null })
}

const fromRow = (row: StoredGrant): Grant =>
  withoutNulls({
    ...row,
    granted: new Date(row.granted),
    expires: new Date(row.expires),
    ended: dateOrNull(row.ended),
  })

const insert = statement<Omit<GrantRow, 'ended' | 'removal'>>(
  `insert into grants ${inserted([...given, 'subjectKey', 'nameKey'])}
   on conflict (target, subject_key, kind, name_key) where state = 'active' do update
   set expires = case when excluded.expires > grants.expires then excluded.expires else grants.expires end`,
)
const findById = statement<{ id: string }, StoredGrant>(`select ${columns(stored)} from grants where id = :id`)
const findBySubject = statement<{ subjectKey: string }, StoredGrant>(
  `select ${columns(stored)} from grants where subject_key = :subjectKey and state = 'active' order by id limit 500`,
)
const findEnded = statement<{ subjectKey: string }, StoredGrant>(
  `select ${columns(stored)} from grants where subject_key = :subjectKey and state = 'revoked' order by id desc limit 100`,
)
const findDue = statement<{ limit: number }, StoredGrant>(
  (on) => `select ${columns(stored)} from grants
    where state = 'active' and expires <= ${on.now} order by expires, id limit :limit`,
)
const extend = statement<{ id: string } & DueValues, StoredGrant>(
  (on) => `update grants set expires = case when ${dueText(on)} > expires then ${dueText(on)} else expires end
    where id = :id and state = 'active' returning ${columns(stored)}`,
)
const revoke = statement<{ id: string; anyway: number; removal: string | null }, StoredGrant>(
  (on) => `update grants set state = 'revoked', ended = ${on.now}, removal = :removal
    where id = :id and state = 'active' and (expires <= ${on.now} or cast(:anyway as bigint) = 1)
    returning ${columns(stored)}`,
)
