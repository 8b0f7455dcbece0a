import { appendAudit } from '#audit/store/audit-chain.ts'
import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { columns, statement } from '#database/statement.ts'
import { assertStorable, isStorable } from '#database/text-keys.ts'
import type { ClientName } from '#features/scim/contract/client-names.ts'
import { lockTokens, revokeTokens } from '#features/scim/tokens/client-token-store.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { overlaps, requireUsable, type Tenant } from './tenant.ts'

/** Each is a part of the configuration of every process. */
export const mostTenants = 1000

interface TenantRow {
  readonly name: string
  readonly host: string
  readonly path: string
  readonly profile: ClientName
  readonly version: number
  readonly created: number
  readonly createdBy: string
  readonly disabled: number | null
  readonly disabledBy: string | null
}

export type NewTenant = Pick<Tenant, 'name' | 'host' | 'path' | 'profile' | 'createdBy'>

/** A change is bound to the version that the operator saw. */
interface TenantChange extends Pick<Tenant, 'name' | 'version'> {
  readonly by: string
}

/** The tenants that operators have added. A change and its audit rows are one transaction. */
export class TenantStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /** All of them, by name. */
  async list(): Promise<readonly Tenant[]> {
    return (await list.all(this.#client, {})).map(fromRow)
  }

  async get(name: string): Promise<Tenant | undefined> {
    const row = isStorable(name) ? await get.first(this.#client, { name }) : undefined
    return row && fromRow(row)
  }

  /**
   * Throws BAD_REQUEST for a name or an address that can't be used, and CONFLICT if another tenant has it, tokens of its
   * client could be used at once, or there are too many.
   */
  async add(tenant: NewTenant, audit: readonly AuditEntry[] = []): Promise<Tenant> {
    const { name, host, path } = tenant
    requireUsable(tenant)
    assertStorable('createdBy', tenant.createdBy)
    return await this.#client.transaction(async (tx) => {
      await lockTenants.all(tx, {})
      const others = await list.all(tx, {})
      if (others.some((other) => other.name === name)) {
        throw refused('CONFLICT', `There is a tenant "${name}". Choose another name.`)
      }
      const near = others.find((other) => other.host === host && overlaps(other.path, path))
      if (near !== undefined) {
        throw refused('CONFLICT', `The tenant "${near.name}" is at ${near.path}. Choose another path.`)
      }
      if (others.length >= mostTenants)
        throw refused('CONFLICT', `There are ${mostTenants} tenants, which is the most.`)
      if ((await lockTokens(tx, name)) > 0) {
        throw refused('CONFLICT', `A client "${name}" has tokens already. Revoke them first, or choose another name.`)
      }
      const added = await insert.first(tx, tenant)
      if (added === undefined) throw new GatewayError('INTERNAL', `the tenant "${name}" was not stored`)
      await appendAudit(tx, audit)
      return fromRow(added)
    })
  }

  /** Throws NOT_FOUND, and VERSION_MISMATCH if the tenant has changed. */
  async setDisabled(change: TenantChange, isDisabled: boolean, audit: readonly AuditEntry[] = []): Promise<Tenant> {
    return await this.#client.transaction(async (tx) => {
      await requireVersion(tx, change)
      const changed = await (isDisabled ? disable : enable).first(tx, change)
      if (changed === undefined) throw moved(change.name)
      await appendAudit(tx, audit)
      return fromRow(changed)
    })
  }

  /**
   * Also revokes its tokens, and returns how many. Throws NOT_FOUND, VERSION_MISMATCH if the tenant has changed, and CONFLICT
   * unless it is disabled.
   */
  async remove(change: TenantChange, audit: readonly AuditEntry[] = []): Promise<number> {
    return await this.#client.transaction(async (tx) => {
      const { disabled } = await requireVersion(tx, change)
      if (disabled === null) throw refused('CONFLICT', `Disable the tenant "${change.name}" before you delete it.`)
      await lockTokens(tx, change.name)
      const revoked = await revokeTokens(tx, change.name, change.by)
      if ((await remove.run(tx, change)) === 0) throw moved(change.name)
      await appendAudit(tx, audit)
      return revoked
    })
  }
}

async function requireVersion(tx: DatabaseTransaction, { name, version, by }: TenantChange): Promise<TenantRow> {
  assertStorable('operator', by)
  const row = isStorable(name) ? await get.first(tx, { name }) : undefined
  if (row === undefined) throw refused('NOT_FOUND', `There is no tenant "${name.slice(0, 80)}".`)
  if (row.version !== version) throw moved(name)
  return row
}

const refused = (code: 'CONFLICT' | 'NOT_FOUND', text: string): GatewayError =>
  new GatewayError(code, text, { publicText: text })

const moved = (name: string): GatewayError =>
  new GatewayError('VERSION_MISMATCH', `the tenant "${name}" has changed`, {
    publicText: 'The tenant has changed. Read it again.',
  })

const fromRow = ({ created, disabled, disabledBy, ...same }: TenantRow): Tenant => ({
  ...same,
  created: new Date(created),
  ...(disabled === null ? {} : { disabled: new Date(disabled) }),
  ...(disabledBy === null ? {} : { disabledBy }),
})

const stored = columns(['name', 'host', 'path', 'profile', 'version', 'created', 'createdBy', 'disabled', 'disabledBy'])

/** Distinguishes this lock from other advisory locks. */
const tenantsLock = 4101

/** Additions wait for each other, since no index finds addresses that overlap. */
const lockTenants = statement<object, unknown>((on) =>
  on.name === 'postgres' ? `select pg_advisory_xact_lock(${tenantsLock})` : `select 1`,
)
const list = statement<object, TenantRow>(`select ${stored} from scim_tenants order by name limit ${mostTenants}`)
const get = statement<{ name: string }, TenantRow>(`select ${stored} from scim_tenants where name = :name`)
const insert = statement<NewTenant, TenantRow>(
  (on) => `insert into scim_tenants (name, host, path, profile, version, created, created_by)
   values (:name, :host, :path, :profile, 1, ${on.now}, :createdBy) returning ${stored}`,
)
const disable = statement<TenantChange, TenantRow>(
  (on) => `update scim_tenants set version = version + 1, disabled = coalesce(disabled, ${on.now}),
     disabled_by = coalesce(disabled_by, :by)
   where name = :name and version = :version returning ${stored}`,
)
const enable = statement<Pick<TenantChange, 'name' | 'version'>, TenantRow>(
  `update scim_tenants set version = version + 1, disabled = null, disabled_by = null
   where name = :name and version = :version returning ${stored}`,
)
const remove = statement<Pick<TenantChange, 'name' | 'version'>>(
  `delete from scim_tenants where name = :name and version = :version`,
)
