import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { AuditSealing } from '#storage/audit-store.ts'
import type { SqlClient, SqlTransaction } from '#storage/client/sql-client.ts'
import { appendToChain, auditEntry, isTokenChain } from '#storage/sql/audit-chain.ts'
import { type AuditSeal, type ChainState, chainColumns, missingKey } from '#storage/sql/audit-seal.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'

const statements = perDialect((dialect) => {
  const chains = (isLocking: boolean) =>
    fixed<object, ChainState>(dialect, (db) =>
      db
        .selectFrom('audit_chains')
        .select(chainColumns)
        .orderBy('chain')
        .$if(isLocking && dialect === 'postgres', (query) => query.forUpdate()),
    )
  return {
    all: chains(false),
    locked: chains(true),
    seal: fixed<ChainState, unknown>(dialect, (db, at) =>
      db
        .updateTable('audit_chains')
        .set({
          sealed_seq: at('sealed_seq'),
          sealed_at: at('sealed_at'),
          broken_seq: at('broken_seq'),
          key_id: at('key_id'),
          mac: at('mac'),
        })
        .where('chain', '=', at('chain')),
    ),
  }
})

/** The current state of all chains, in one snapshot. */
export const readChains = (client: Pick<SqlClient, 'dialect' | 'query'>): Promise<ChainState[]> =>
  client.query(statements(client.dialect).all({}))

/** Seals a database that has no seals, and seals again what an older key sealed. */
export async function authenticateAudit(client: SqlClient, seal: AuditSeal | undefined): Promise<AuditSealing> {
  if (seal === undefined) throw noKey()
  const found = await readChains(client)
  const needsWork = found.some((chain) => chain.mac === null || !seal.isCurrent(chain))
  const records = needsWork ? await client.transaction((tx) => sealWhatIsNew(tx, seal)) : undefined
  const now = await readChains(client)
  const unknown = now.find((chain) => seal.check(chain) === 'no key')
  if (unknown !== undefined) throw missingKey(unknown.key_id)
  seal.isRequired = true
  const forged = now.flatMap((chain) => (seal.check(chain) === 'sealed' ? [] : [chain.chain]))
  return { sealed: records !== undefined, records: records ?? 0, forged }
}

/**
 * How many existing records were sealed; undefined where there are seals. If only some chains have a seal, this isn't the
 * first start: the others are left for `verify` to report, unless they are chains of a later version that no one has
 * written to. That they were sealed now is an entry, and `verify` reports since when.
 */
async function sealWhatIsNew(tx: SqlTransaction, seal: AuditSeal): Promise<number | undefined> {
  const chains = await tx.query(statements(tx.dialect).locked({}))
  if (chains.every(({ mac }) => mac === null)) return await sealAll(tx, seal, chains, 'gatehouse')
  for (const chain of chains) {
    if (seal.check(chain) === 'sealed' && !seal.isCurrent(chain)) {
      await tx.run(statements(tx.dialect).seal(seal.sign(chain)))
    }
  }
  const added = chains.filter((chain) => isTokenChain(chain.chain) && isUntouched(chain))
  const sealed_at = systemClock().getTime()
  for (const chain of added) {
    await tx.run(statements(tx.dialect).seal(seal.sign({ ...chain, sealed_seq: 0, sealed_at, broken_seq: null })))
  }
  if (added.length > 0) {
    const value = `new chains ${added.map(({ chain }) => chain).join(', ')}`
    await appendToChain(tx, [
      auditEntry({ action: 'add', attribute: 'seal', value, reason: 'they have no records yet' }),
    ])
  }
  return undefined
}

/** Accepts the current state of every chain. */
export async function resealAudit(client: SqlClient, seal: AuditSeal | undefined, by: string): Promise<AuditSealing> {
  if (seal === undefined) throw noKey()
  return await client.transaction(async (tx) => {
    const chains = await tx.query(statements(tx.dialect).locked({}))
    const unknown = chains.filter((chain) => seal.check(chain) === 'no key')
    const replacedKeys = [...new Set(unknown.flatMap(({ key_id }) => key_id ?? []))]
    return { sealed: true, records: await sealAll(tx, seal, chains, by), forged: [], replacedKeys }
  })
}

/** An empty audit needs no entry. */
async function sealAll(
  tx: SqlTransaction,
  seal: AuditSeal,
  chains: readonly ChainState[],
  by: string,
): Promise<number> {
  const at = systemClock().getTime()
  for (const chain of chains) {
    const sealed = seal.sign({ ...chain, sealed_seq: chain.seq, sealed_at: at, broken_seq: null })
    await tx.run(statements(tx.dialect).seal(sealed))
  }
  const filled = chains.filter(({ chain, seq, base_seq }) => chain >= 0 && seq > base_seq)
  if (filled.length > 0) {
    const value = filled.map(({ chain, seq }) => `chain ${chain}, record ${seq}`).join('; ')
    const reason = 'the records up to these were sealed in their current state'
    await appendToChain(tx, [auditEntry({ action: 'add', attribute: 'seal', value, reason }, by)])
  }
  return filled.reduce((sum, { seq, base_seq }) => sum + seq - base_seq, 0)
}

const isUntouched = ({ mac, seq, hash, base_seq, base_hash }: ChainState): boolean =>
  mac === null && seq === 0 && hash === '' && base_seq === 0 && base_hash === ''

const noKey = (): GatewayError => new GatewayError('INTERNAL', 'no key to seal the audit with')
