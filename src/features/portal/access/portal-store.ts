import { readNow } from '#database/database-time.ts'
import type { SqlClient } from '#database/sql-client.ts'
import { RowInsert, statement } from '#database/statement.ts'
import { assertStorable, isStorable, storable } from '#database/text-keys.ts'
import type { Identity, UserRef } from '#identity/identity.ts'

/** `read`: notifications that the user has read. */
type MarkList = 'favorite' | 'recent' | 'read'

/** An item of the portal that a user marked or used. */
export interface PortalMark {
  readonly kind: string
  readonly name: string
  readonly at: Date
}

/** Parameters of a workflow that a user saw. */
interface PortalOffer {
  /** The hash of the user's reference. */
  readonly reference: string
  readonly workflow: string
  readonly parameters: Readonly<Record<string, string>>
}

interface ListKey {
  readonly user: Identity
  readonly list: MarkList
}

interface MarkKey extends ListKey {
  readonly kind: string
  readonly name: string
}

interface OfferRow {
  readonly reference: string
  readonly loginKey: Identity
  readonly workflow: string
  readonly parameters: string
  readonly expires: number
}

/** Favorites, recently used items, read notifications and offers of portal users. */
export class PortalStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /** Earliest first. */
  async marks(user: UserRef, list: MarkList): Promise<readonly PortalMark[]> {
    const rows = await findMarks.all(this.#client, { user: user.identity, list })
    return rows.map(({ kind, name, at }) => ({ kind, name, at: new Date(at) }))
  }

  /** An item that is marked already keeps its time. False, and nothing is written, when the list has `limit` others. */
  async mark(user: UserRef, list: MarkList, mark: Omit<PortalMark, 'at'>, limit: number): Promise<boolean> {
    const key = markKey(user, list, mark)
    return await this.#client.transaction(async (tx) => {
      const present = await findMarks.all(tx, key)
      if (present.some(({ kind, name }) => kind === mark.kind && name === mark.name)) return true
      return (await insertMark.first(tx, { ...key, limit })) !== undefined
    })
  }

  /** An item that is marked already gets the current time. The latest `limit` items of the list stay. */
  async note(user: UserRef, list: MarkList, mark: Omit<PortalMark, 'at'>, limit: number): Promise<void> {
    const key = markKey(user, list, mark)
    await this.#client.transaction(async (tx) => {
      await deleteMark.run(tx, key)
      await insertMark.all(tx, { ...key, limit: limit + 1_000 })
      await trimMarks.run(tx, { ...key, limit })
    })
  }

  /**
   * Marks several items; those that are marked already keep their time. With `keep`, marks of other items are deleted.
   * The latest `limit` items of the list stay.
   */
  async noteAll(
    user: UserRef,
    list: MarkList,
    marks: readonly Omit<PortalMark, 'at'>[],
    { limit, keep }: { readonly limit: number; readonly keep?: readonly Omit<PortalMark, 'at'>[] },
  ): Promise<void> {
    const keys = marks.map((mark) => markKey(user, list, mark))
    const kept = keep && new Set([...keep, ...marks].map(itemText))
    await this.#client.transaction(async (tx) => {
      const present = await findMarks.all(tx, { user: user.identity, list })
      const stale = kept === undefined ? [] : present.filter((mark) => !kept.has(itemText(mark)))
      for (const { kind, name } of stale) await deleteMark.run(tx, { user: user.identity, list, kind, name })
      // Each is later than the one before, so that a list is cut at one place.
      const first = Math.max(await readNow(tx), (present.at(-1)?.at ?? 0) + 1)
      const rows = keys.map(({ kind, name }, i) => ({ loginKey: user.identity, list, kind, name, at: first + i }))
      insertMarks.run(tx, rows)
      await trimMarks.run(tx, { user: user.identity, list, limit })
    })
  }

  async unmark(user: UserRef, list: MarkList, mark: Omit<PortalMark, 'at'>): Promise<void> {
    if (!isStorable(mark.kind) || !isStorable(mark.name)) return
    const key = markKey(user, list, mark)
    await this.#client.transaction((tx) => deleteMark.run(tx, key))
  }

  /**
   * Offers expire after that long, by the database's clock. Removes expired offers of all users, and all but the latest
   * `keep` of this user.
   */
  async offer(user: UserRef, offers: readonly PortalOffer[], forMillis: number, keep: number): Promise<void> {
    await this.#client.transaction(async (tx) => {
      const now = await readNow(tx)
      await deleteExpiredOffers.run(tx, { now })
      await trimOffers.run(tx, { user: user.identity, keep })
      const rows = offers.map(({ reference, workflow, parameters }) => ({
        reference,
        loginKey: user.identity,
        workflow,
        parameters: storable(JSON.stringify(parameters)),
        expires: now + Math.trunc(forMillis),
      }))
      insertOffers.run(tx, rows)
    })
  }

  /** Undefined when the reference is unknown, belongs to another user or has expired. */
  async offered(user: UserRef, reference: string): Promise<PortalOffer | undefined> {
    if (!isStorable(reference)) return undefined
    const row = await findOffer.first(this.#client, { reference, user: user.identity })
    return row && { reference, workflow: row.workflow, parameters: JSON.parse(row.parameters) }
  }
}

function markKey(user: UserRef, list: MarkList, { kind, name }: Omit<PortalMark, 'at'>): MarkKey {
  assertStorable('name', name)
  return { user: user.identity, list, kind, name }
}

const itemText = ({ kind, name }: Omit<PortalMark, 'at'>): string => `${kind} ${name}`

const ofList = `login_key = :user and list = :list`

const findMarks = statement<ListKey, { kind: string; name: string; at: number }>(
  `select kind, name, at from portal_marks where ${ofList} order by at, name`,
)
/** Later than all others of the list, so that the order is that of the calls. */
const insertMark = statement<MarkKey & { readonly limit: number }, { name: string }>(
  (on) => `insert into portal_marks (login_key, list, kind, name, at)
    select :user, :list, :kind, :name, case when coalesce(max(at), 0) >= ${on.now} then max(at) + 1 else ${on.now} end
    from portal_marks where ${ofList} having count(*) < cast(:limit as integer)
    on conflict (login_key, list, kind, name) do nothing
    returning name`,
)
const insertMarks = new RowInsert<{ loginKey: Identity; list: MarkList; kind: string; name: string; at: number }>(
  'portal_marks',
  ['loginKey', 'list', 'kind', 'name', 'at'],
  'on conflict (login_key, list, kind, name) do nothing',
)
const deleteMark = statement<MarkKey>(`delete from portal_marks where ${ofList} and kind = :kind and name = :name`)
/** Deletes all but the latest. */
const trimMarks = statement<ListKey & { readonly limit: number }>(
  `delete from portal_marks where ${ofList} and at <=
     (select at from portal_marks where ${ofList} order by at desc limit 1 offset cast(:limit as integer))`,
)

const insertOffers = new RowInsert<OfferRow>('portal_offers', [
  'reference',
  'loginKey',
  'workflow',
  'parameters',
  'expires',
])
const trimOffers = statement<{ user: Identity; keep: number }>(
  `delete from portal_offers where login_key = :user and expires <=
     (select expires from portal_offers where login_key = :user
      order by expires desc limit 1 offset cast(:keep as integer))`,
)
const deleteExpiredOffers = statement<{ now: number }>(`delete from portal_offers where expires <= :now`)
const findOffer = statement<{ reference: string; user: Identity }, Pick<OfferRow, 'workflow' | 'parameters'>>(
  (on) => `select workflow, parameters from portal_offers
    where reference = :reference and login_key = :user and expires > ${on.now}`,
)
