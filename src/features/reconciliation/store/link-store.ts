import { appendAudit } from '#audit/store/audit-chain.ts'
import type { SqlClient } from '#database/sql-client.ts'
import { columns, ListStatement, statement, withoutNulls } from '#database/statement.ts'
import { assertStorable, isStorable, optionalText } from '#database/text-keys.ts'
import type { AccountLink } from '#features/reconciliation/plan/difference.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { StoredLink } from './plan-record.ts'

const maxPage = 500
/** Longer names do not fit into an index. */
const maxName = 500

type LinkRow = {
  readonly reconciliation: string
  readonly source: string
  readonly target: string | null
  readonly decided: number
  readonly decidedBy: string
  readonly reason: string | null
}

/** Decisions of persons which account a person has. Names are compared exactly. */
export class LinkStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /** Replaces an earlier decision about the person. Throws CONFLICT if another person has the account, BAD_REQUEST for names that can't be stored. */
  async set(link: Omit<StoredLink, 'decided'>, audit: readonly AuditEntry[]): Promise<void> {
    const { reconciliation, source, target, decidedBy, reason } = link
    assertName('name of the reconciliation', reconciliation)
    assertName('person', source)
    if (target !== undefined) assertName('account', target)
    assertStorable('operator', decidedBy)
    const row = { reconciliation, source, target: target ?? null, decidedBy, reason: optionalText(reason) }
    await this.#client.transaction(async (tx) => {
      const [other] = target === undefined ? [] : await findByTargets.all(tx, { reconciliation }, [target])
      if (other !== undefined && other.source !== source) {
        const text = `The account "${target}" is linked to "${other.source}". Remove that link first.`
        throw new GatewayError('CONFLICT', text, { publicText: text })
      }
      await upsert.run(tx, row)
      await appendAudit(tx, audit)
    })
  }

  /** False, and nothing is written, if there is no decision about the person. */
  async remove(reconciliation: string, source: string, audit: readonly AuditEntry[]): Promise<boolean> {
    if (!isStorable(reconciliation) || !isStorable(source)) return false
    return await this.#client.transaction(async (tx) => {
      const removed = (await remove.run(tx, { reconciliation, source })) > 0
      if (removed) await appendAudit(tx, audit)
      return removed
    })
  }

  async ofSources(reconciliation: string, sources: readonly string[]): Promise<readonly AccountLink[]> {
    const rows = await findBySources.all(this.#client, { reconciliation }, sources.filter(isStorable))
    return rows.map(withoutNulls)
  }

  async ofTargets(reconciliation: string, targets: readonly string[]): Promise<readonly AccountLink[]> {
    const rows = await findByTargets.all(this.#client, { reconciliation }, targets.filter(isStorable))
    return rows.map(withoutNulls)
  }

  /** In the order of the persons' names, at most 500 after that one. */
  async list(reconciliation: string, limit: number, after = ''): Promise<readonly StoredLink[]> {
    if (!isStorable(reconciliation) || !isStorable(after)) return []
    const most = Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage))
    const rows = await list.all(this.#client, { reconciliation, after, limit: most })
    return rows.map(({ decided, ...row }) => ({ ...withoutNulls(row), decided: new Date(decided) }))
  }
}

function assertName(what: string, text: string): void {
  assertStorable(what, text)
  if (text !== '' && text.length <= maxName) return
  const publicText = `The ${what} must have 1 to ${maxName} characters.`
  throw new GatewayError('BAD_REQUEST', publicText, { publicText })
}

const upsert = statement<Omit<LinkRow, 'decided'>>(
  (on) => `insert into reconciliation_links (reconciliation, source, target, decided, decided_by, reason)
    values (:reconciliation, :source, :target, ${on.now}, :decidedBy, :reason)
    on conflict (reconciliation, source) do update
    set target = excluded.target, decided = excluded.decided, decided_by = excluded.decided_by,
      reason = excluded.reason`,
)
const remove = statement<Pick<LinkRow, 'reconciliation' | 'source'>>(
  `delete from reconciliation_links where reconciliation = :reconciliation and source = :source`,
)
const findBySources = new ListStatement<Pick<LinkRow, 'reconciliation'>, string, Pick<LinkRow, 'source' | 'target'>>(
  `select source, target from reconciliation_links where reconciliation = :reconciliation and source in (:list)`,
)
const findByTargets = new ListStatement<Pick<LinkRow, 'reconciliation'>, string, Pick<LinkRow, 'source' | 'target'>>(
  `select source, target from reconciliation_links where reconciliation = :reconciliation and target in (:list)`,
)
const list = statement<{ reconciliation: string; after: string; limit: number }, LinkRow>(
  `select ${columns(['reconciliation', 'source', 'target', 'decided', 'decidedBy', 'reason'])}
   from reconciliation_links where reconciliation = :reconciliation and source > :after order by source limit :limit`,
)
