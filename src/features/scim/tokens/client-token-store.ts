import { appendAudit } from '#audit/store/audit-chain.ts'
import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { columns, deletedAtOnce, deleteInParts, statement } from '#database/statement.ts'
import { assertStorable, isStorable } from '#database/text-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import { secretHash } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { type ClientToken, nameProblem, warnedMillis } from './client-token.ts'

/** Tokens of one client that can be used at the same time. */
const mostOfClient = 20
/** Tokens that expired or were revoked are listed for this long. */
const keptMillis = 90 * 24 * 3600_000
/** Uses within this time are noted once. */
export const useMillis = 60_000
const maxListed = 1000

interface TokenRow {
  readonly id: string
  readonly client: string
  readonly name: string
  readonly created: number
  readonly createdBy: string | null
  readonly expires: number | null
  readonly revoked: number | null
  readonly revokedBy: string | null
  readonly lastUsed: number | null
}

/** What a new token is made of. `text` is not stored. */
export interface NewClientToken extends Pick<ClientToken, 'id' | 'client' | 'name'> {
  readonly text: string
  readonly createdBy: string
  readonly expires?: Date | undefined
}

export interface UsableToken extends ClientToken {
  /** An operator added its client in the console. */
  readonly isOfTenant: boolean
}

/** The tokens of SCIM clients. A change and its audit rows are one transaction; times are those of the database. */
export class ClientTokenStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /** Throws BAD_REQUEST for a name or a time that can't be used, CONFLICT if the client has such a token or too many. */
  async add(token: NewClientToken, audit: readonly AuditEntry[] = []): Promise<void> {
    checkNames(token)
    await this.#client.transaction(async (tx) => {
      const usable = await usableOf(tx, token.client)
      if (usable.some(({ name }) => name === token.name)) {
        throw refused(
          'CONFLICT',
          `"${token.client}" has a token "${token.name}". Rotate or revoke it, or choose another name.`,
        )
      }
      await this.#insert(tx, token, usable.length)
      await appendAudit(tx, audit)
    })
  }

  /**
   * Adds a token beside those of its name, which then expire after the overlap, unless they do before. Throws NOT_FOUND if
   * there are none.
   */
  async rotate(token: NewClientToken, overlapMillis: number, audit: readonly AuditEntry[] = []): Promise<void> {
    checkNames(token)
    await this.#client.transaction(async (tx) => {
      const { client, name } = token
      const usable = await usableOf(tx, client)
      if (!usable.some((one) => one.name === name)) throw refused('NOT_FOUND', `"${client}" has no token "${name}".`)
      await limitExpiry.run(tx, { client, name, overlap: overlapMillis })
      await this.#insert(tx, token, usable.length)
      await appendAudit(tx, audit)
    })
  }

  async #insert(tx: DatabaseTransaction, { text, expires, ...token }: NewClientToken, usable: number): Promise<void> {
    if (usable >= mostOfClient) {
      throw refused('CONFLICT', `"${token.client}" has ${usable} tokens, and ${mostOfClient} is the most. Revoke some.`)
    }
    assertStorable('createdBy', token.createdBy)
    const row = { ...token, hash: secretHash(text), expires: expires?.getTime() ?? null }
    if ((await insert.run(tx, row)) === 0) throw refused('BAD_REQUEST', 'A token must expire in the future.')
  }

  /** Revokes the tokens of that name that can be used, and returns how many. From then on no process finds them. */
  async revoke(client: string, name: string, by: string, audit: readonly AuditEntry[] = []): Promise<number> {
    if (!isStorable(client) || !isStorable(name)) return 0
    return await this.#client.transaction(async (tx) => {
      const revoked = await revoke.run(tx, { client, name, by })
      if (revoked > 0) await appendAudit(tx, audit)
      return revoked
    })
  }

  /** Revokes one token, and returns whether it could be used until now. */
  async revokeById(id: string, by: string, audit: readonly AuditEntry[] = []): Promise<boolean> {
    return await this.#client.transaction(async (tx) => {
      const revoked = await revokeById.run(tx, { id, by })
      if (revoked > 0) await appendAudit(tx, audit)
      return revoked > 0
    })
  }

  async get(id: string): Promise<ClientToken | undefined> {
    const row = isStorable(id) ? await getById.first(this.#client, { id }) : undefined
    return row && fromRow(row)
  }

  /** The token with this text, if it can be used now. Those of a tenant that is disabled can't. */
  async find(text: string): Promise<UsableToken | undefined> {
    const row = await findByHash.first(this.#client, { hash: secretHash(text) })
    if (row === undefined) return undefined
    const { tenants, ...token } = row
    return { ...fromRow(token), isOfTenant: tenants > 0 }
  }

  /** By client and name, the latest first, with those that can no longer be used, at most 1,000. */
  async list(client?: string): Promise<readonly ClientToken[]> {
    if (client !== undefined && !isStorable(client)) return []
    return (await list.all(this.#client, { client: client ?? '' })).map(fromRow)
  }

  /** How many tokens expire soon. */
  async expiring(): Promise<number> {
    return (await countExpiring.first(this.#client, {}))?.count ?? 0
  }

  /** Notes that the token was used now. */
  async use(id: string): Promise<void> {
    await this.#client.transaction((tx) => use.run(tx, { id }), 'soon')
  }

  /** Deletes tokens that expired, or were revoked, long ago. */
  async prune(): Promise<void> {
    await deleteInParts(this.#client, deleteOld, { kept: keptMillis })
  }
}

async function usableOf(tx: DatabaseTransaction, client: string): Promise<readonly TokenRow[]> {
  // Requests for tokens of one client wait for each other, also while it has none.
  await lockClient.all(tx, { client: client.toLowerCase() })
  const other = await findSimilar.first(tx, { client, folded: client.toLowerCase() })
  if (other !== undefined) {
    const text = `There is a client "${other.client}", and names that differ in letter case only are not distinguished.`
    throw refused('CONFLICT', `${text} Use that name, or choose another one.`)
  }
  return await findUsable.all(tx, { client })
}

/** How many tokens of the client can be used. It gets no other until the transaction ends. */
export const lockTokens = async (tx: DatabaseTransaction, client: string): Promise<number> =>
  (await usableOf(tx, client)).length

/** Revokes all tokens of the client that can be used, and returns how many. */
export const revokeTokens = (tx: DatabaseTransaction, client: string, by: string): Promise<number> =>
  Promise.resolve(revokeAll.run(tx, { client, by }))

function checkNames({ id, client, name }: NewClientToken): void {
  assertStorable('id', id)
  for (const [what, value] of [
    ['client', client],
    ['token', name],
  ] as const) {
    const problem = nameProblem(value)
    if (problem !== undefined) throw refused('BAD_REQUEST', `The name of a ${what} ${problem}.`)
  }
}

const refused = (code: 'BAD_REQUEST' | 'CONFLICT' | 'NOT_FOUND', text: string): GatewayError =>
  new GatewayError(code, text, { publicText: text })

function fromRow({ created, createdBy, expires, revoked, revokedBy, lastUsed, ...same }: TokenRow): ClientToken {
  return {
    ...same,
    created: new Date(created),
    ...(createdBy === null ? {} : { createdBy }),
    ...(revokedBy === null ? {} : { revokedBy }),
    ...(expires === null ? {} : { expires: new Date(expires) }),
    ...(revoked === null ? {} : { revoked: new Date(revoked) }),
    ...(lastUsed === null ? {} : { lastUsed: new Date(lastUsed) }),
  }
}

const stored = ['id', 'client', 'name', 'created', 'createdBy', 'expires', 'revoked', 'revokedBy', 'lastUsed'] as const

/** Distinguishes locks on clients from other advisory locks. */
const clientLock = 41

const lockClient = statement<{ client: string }, unknown>((on) =>
  on.name === 'postgres' ? `select pg_advisory_xact_lock(hashtextextended(:client, ${clientLock}))` : `select :client`,
)
const isUsable = (now: string): string => `revoked is null and (expires is null or expires > ${now})`
/** Counts those that expire soon. */
export const expiringTokens = (now: string): string =>
  `select count(*) as count from scim_tokens where ${isUsable(now)} and expires <= ${now} + ${warnedMillis}`
const findUsable = statement<{ client: string }, TokenRow>(
  (on) => `select ${columns(stored)} from scim_tokens where client = :client and ${isUsable(on.now)}`,
)
/** A client with another spelling of the name. */
const findSimilar = statement<{ client: string; folded: string }, { client: string }>(
  (on) =>
    `select client from scim_tokens where lower(client) = :folded and client <> :client and ${isUsable(on.now)} limit 1`,
)
const insert = statement<{
  id: string
  client: string
  name: string
  hash: string
  createdBy: string
  expires: number | null
}>(
  (on) => `insert into scim_tokens (id, client, name, hash, created, created_by, expires)
   select :id, :client, :name, :hash, ${on.now}, :createdBy, cast(:expires as bigint)
   where cast(:expires as bigint) is null or cast(:expires as bigint) > ${on.now}`,
)
const limitExpiry = statement<{ client: string; name: string; overlap: number }>(
  (on) => `update scim_tokens set expires = ${on.now} + cast(:overlap as bigint)
   where client = :client and name = :name and ${isUsable(on.now)}
     and (expires is null or expires > ${on.now} + cast(:overlap as bigint))`,
)
const revoke = statement<{ client: string; name: string; by: string }>(
  (on) => `update scim_tokens set revoked = ${on.now}, revoked_by = :by
   where client = :client and name = :name and ${isUsable(on.now)}`,
)
const revokeById = statement<{ id: string; by: string }>(
  (on) => `update scim_tokens set revoked = ${on.now}, revoked_by = :by where id = :id and ${isUsable(on.now)}`,
)
const revokeAll = statement<{ client: string; by: string }>(
  (on) => `update scim_tokens set revoked = ${on.now}, revoked_by = :by where client = :client and ${isUsable(on.now)}`,
)
const getById = statement<{ id: string }, TokenRow>(`select ${columns(stored)} from scim_tokens where id = :id`)
/** Independent of the configuration, which a process may be unable to load again. */
const findByHash = statement<{ hash: string }, TokenRow & { readonly tenants: number }>(
  (on) => `select ${columns(stored)}, (select count(*) from scim_tenants where name = client) as tenants
   from scim_tokens where hash = :hash and ${isUsable(on.now)}
     and not exists (select 1 from scim_tenants as t where t.name = client and t.disabled is not null)`,
)
const list = statement<{ client: string }, TokenRow>(
  `select ${columns(stored)} from scim_tokens where :client = '' or client = :client
   order by client, name, created desc, id limit ${maxListed}`,
)
const countExpiring = statement<object, { count: number }>((on) => expiringTokens(on.now))
const use = statement<{ id: string }>(
  (on) => `update scim_tokens set last_used = ${on.now}
   where id = :id and (last_used is null or last_used < ${on.now} - ${useMillis})`,
)
const deleteOld = statement<{ kept: number }>(
  (on) => `delete from scim_tokens where id in
     (select id from scim_tokens where coalesce(revoked, expires) < ${on.now} - cast(:kept as bigint) limit ${deletedAtOnce})`,
)
