import { type DueValues, dueText, dueValues, readNow, timeOf } from '#database/database-time.ts'
import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { columns, dateOrNull, inserted, statement, withoutNulls } from '#database/statement.ts'
import { assertStorable, isStorable, lookupKey, storable } from '#database/text-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { When } from '#kernel/time.ts'
import type { AccessNow, Grant, GrantRevocation, NewGrant } from '#sdk/workflow/grant.ts'

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

  /** The active grants of a user that runs of the workflow granted or extended, at most 500. */
  async through(workflow: string, subject: string): Promise<readonly Grant[]> {
    if (!isStorable(subject)) return []
    return (await findThrough.all(this.#client, { workflow, subjectKey: lookupKey(subject) })).map(fromRow)
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

  /** By the run that granted or extended the access, for at most 500 of them. */
  async ofRuns(runs: readonly string[]): Promise<ReadonlyMap<string, AccessNow>> {
    if (runs.length === 0) return new Map()
    const rows = await findOfRuns.all(this.#client, { runs: JSON.stringify(runs.filter(isStorable)) })
    return new Map(rows.map((row) => [row.request, accessNow(row)]))
  }

  /** Undefined if it is no longer active, or lasts longer already. */
  async extend(id: string, expires: When, run: string): Promise<Grant | undefined> {
    if (!isStorable(id)) return undefined
    const row = await this.#client.transaction(async (tx) => {
      const extended = await extend.first(tx, { id, ...dueValues(expires) })
      if (extended !== undefined && extended.run !== run) linkRun.send(tx, { id, run })
      return extended
    })
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
    const access = {
      target: storable(target),
      subjectKey: lookupKey(subject),
      kind,
      nameKey: lookupKey(storable(name)),
    }
    insert.send(tx, {
      ...access,
      id,
      subject,
      name: storable(name),
      granted: now,
      expires: timeOf(expires, now),
      run: run ?? null,
      state: 'active',
    })
    if (run !== undefined) linkToActive.send(tx, { ...access, run })
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

/** What the grants of one run are now. */
interface RunGrants {
  readonly request: string
  /** When the first of those that are active expires. */
  readonly until: number | null
  readonly expires: number
  readonly ended: number | null
  /** 1 if each of them was revoked before its expiry. */
  readonly givenBack: number
  /** 1 while a run that removes access has not ended, 2 if one of them failed. */
  readonly removal: number
  readonly now: number
}

function accessNow({ until, expires, ended, givenBack, removal, now }: RunGrants): AccessNow {
  // The next round of the revoker ends what has expired.
  if (until !== null) return { state: until <= now ? 'removing' : 'active', expires: new Date(until) }
  return {
    state: (['ended', 'removing', 'notRemoved'] as const)[removal] ?? 'notRemoved',
    expires: new Date(expires),
    ...(ended === null ? {} : { ended: new Date(ended) }),
    ...(givenBack === 1 ? { givenBack: true } : {}),
  }
}

const insert = statement<Omit<GrantRow, 'ended' | 'removal'>>(
  `insert into grants ${inserted([...given, 'subjectKey', 'nameKey'])}
   on conflict (target, subject_key, kind, name_key) where state = 'active' do update
   set expires = case when excluded.expires > grants.expires then excluded.expires else grants.expires end`,
)
const findById = statement<{ id: string }, StoredGrant>(`select ${columns(stored)} from grants where id = :id`)
const findBySubject = statement<{ subjectKey: string }, StoredGrant>(
  `select ${columns(stored)} from grants where subject_key = :subjectKey and state = 'active' order by id limit 500`,
)
const findThrough = statement<{ workflow: string; subjectKey: string }, StoredGrant>(
  `select ${columns(stored)} from grants
   where subject_key = :subjectKey and state = 'active' and (
     exists (select 1 from runs where runs.id = grants.run and runs.name = :workflow)
     or exists (
       select 1 from grant_runs join runs on runs.id = grant_runs.run
       where grant_runs.grant_id = grants.id and runs.name = :workflow))
   order by id limit 500`,
)
const findEnded = statement<{ subjectKey: string }, StoredGrant>(
  `select ${columns(stored)} from grants where subject_key = :subjectKey and state = 'revoked' order by id desc limit 100`,
)
const findDue = statement<{ limit: number }, StoredGrant>(
  (on) => `select ${columns(stored)} from grants
    where state = 'active' and expires <= ${on.now} order by expires, id limit :limit`,
)
const extend = statement<{ id: string } & DueValues, StoredGrant>(
  (on) => `update grants set expires = ${dueText(on)}
    where id = :id and state = 'active' and expires <= ${dueText(on)} returning ${columns(stored)}`,
)

const linkRun = statement<{ id: string; run: string }>(
  `insert into grant_runs (grant_id, run) values (:id, :run) on conflict do nothing`,
)

/** The first run of a grant is in the grant itself. */
const linkToActive = statement<Pick<GrantRow, 'target' | 'subjectKey' | 'kind' | 'nameKey'> & { run: string }>(
  `insert into grant_runs (grant_id, run)
   select id, cast(:run as text) from grants
   where target = :target and subject_key = :subjectKey and kind = :kind and name_key = :nameKey and state = 'active'
     and run is distinct from cast(:run as text)
   on conflict do nothing`,
)

const listedRuns = {
  sqlite: 'select value from json_each(:runs)',
  postgres: 'select json_array_elements_text(cast(:runs as json))',
} as const

/** One row for each run, so that the answer is bounded. Exported for the test of its query plan. */
export const findOfRuns = statement<{ runs: string }, RunGrants>(
  (on) => `select linked.request, ${on.now} as now,
     min(case when g.state = 'active' then g.expires end) as until, max(g.expires) as expires, max(g.ended) as ended,
     min(case when g.ended < g.expires then 1 else 0 end) as "givenBack",
     max(case when removals.state is null or removals.state = 'completed' then 0
       when removals.state in ('ready', 'running', 'waiting') then 1 else 2 end) as removal
   from (
     select run as request, id as grant_id from grants where run in (${listedRuns[on.name]})
     union all
     select run, grant_id from grant_runs where run in (${listedRuns[on.name]})
   ) as linked
   join grants g on g.id = linked.grant_id
   left join runs removals on removals.id = g.removal
   group by linked.request`,
)
const revoke = statement<{ id: string; anyway: number; removal: string | null }, StoredGrant>(
  (on) => `update grants set state = 'revoked', ended = ${on.now}, removal = :removal
    where id = :id and state = 'active' and (expires <= ${on.now} or cast(:anyway as bigint) = 1)
    returning ${columns(stored)}`,
)
