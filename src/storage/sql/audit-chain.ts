import { hash } from 'node:crypto'
import { sql } from 'kysely'
import type { AuditEntry } from '#domain/audit.ts'
import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { SqlTransaction } from '#storage/client/sql-client.ts'
import { type AuditContext, type StoredRecord, storedRecord } from '#storage/sql/audit-contexts.ts'
import { auditColumns, type RecordColumns, toRecords } from '#storage/sql/audit-records.ts'
import { authenticity, type ChainState, chainColumns, missingKey } from '#storage/sql/audit-seal.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { asLists, type Builder, fixed, fixedInserts } from '#storage/sql/queries.ts'

const chains = 16
const tokenChains = 4

/** As the migrations made them. Decisions about tokens have the last ones, so that they can be pruned separately. */
export const auditChains: readonly number[] = Array.from({ length: chains + tokenChains }, (_, chain) => chain)

export const isTokenChain = (chain: number): boolean => chain >= chains

type HeadColumns = readonly [
  chain: number,
  seq: number,
  hash: string,
  base_seq: number,
  base_hash: string,
  sealed_seq: number | null,
  sealed_at: number | null,
  broken_seq: number | null,
  key_id: string | null,
  mac: string | null,
]

export type ChainedRecord = RecordColumns & {
  readonly chain: number
  readonly chain_seq: number
  readonly hash: string
}

type StoredChainedRecord = ChainedRecord & Pick<StoredRecord, 'context'>

const columns = [...auditColumns, 'context', 'chain', 'chain_seq', 'hash'] as const
const numbers: ReadonlySet<string> = new Set(['time', 'chain', 'chain_seq'])

/**
 * A head is locked until its transaction ends. On PostgreSQL one that nobody holds is taken; a file has one writer, for
 * whom one chain will do.
 */
const statements = perDialect((dialect) => {
  const heads = (db: Builder) => db.selectFrom('audit_chains').select(chainColumns)
  return {
    free: fixed<{ first: number; last: number }, ChainState>(dialect, (db, at) => {
      if (dialect === 'sqlite') return heads(db).where('chain', '=', at('first'))
      const some = heads(db).where('chain', '>=', at('first')).where('chain', '<=', at('last'))
      return some.limit(1).forUpdate().skipLocked()
    }),
    given: fixed<{ chain: number }, ChainState>(dialect, (db, at) => {
      const one = heads(db).where('chain', '=', at('chain'))
      return dialect === 'sqlite' ? one : one.forUpdate()
    }),
    insert: fixedInserts<StoredChainedRecord>(dialect, columns, (db, rows) => db.insertInto('audit').values(rows)),
    advance: fixed<ChainState, unknown>(dialect, (db, at) =>
      db
        .updateTable('audit_chains')
        .set({ seq: at('seq'), hash: at('hash'), broken_seq: at('broken_seq'), key_id: at('key_id'), mac: at('mac') })
        .where('chain', '=', at('chain')),
    ),
  }
})

/** Rows and head in one statement, which saves PostgreSQL a journey. */
const insertAndAdvance = perDialect((dialect) =>
  fixed<ChainState & { readonly records: string }, unknown>(dialect, (db, at) => {
    const names = sql.join(columns.map((name) => sql.ref(name)))
    const types = sql.join(columns.map((name) => sql`${sql.ref(name)} ${numbers.has(name) ? sql`bigint` : sql`text`}`))
    return {
      compile: () =>
        sql`with head as (
            update audit_chains
            set seq = ${at('seq')}, hash = ${at('hash')}, broken_seq = ${at('broken_seq')},
              key_id = ${at('key_id')}, mac = ${at('mac')}
            where chain = ${at('chain')}
          )
          insert into audit (${names})
          select ${names} from json_to_recordset(cast(${at('records')} as json)) as record(${types})
          order by chain_seq`.compile(db),
    }
  }),
)

/**
 * Writes rows as the next links of a chain, and seals its new head. To come last in a transaction, since others may wait
 * for the head. The new head does not hide a forged one: an entry before the rows records the forgery, and the chain
 * keeps the mark. Throws INTERNAL where the chain is sealed with a key that is not here. `contexts` are those that are
 * stored, by the id of the row that has one; rows without are stored whole.
 */
export async function appendToChain(
  tx: SqlTransaction,
  rows: readonly AuditEntry[],
  contexts: ReadonlyMap<string, AuditContext> = new Map(),
): Promise<void> {
  const head = await takeHead(tx, rows.length > 0 && rows.every(({ kind }) => kind === 'token'))
  const { seal } = tx
  const trust = authenticity(seal, head)
  if (trust === 'no key') throw missingKey(head.key_id)
  const isForged = trust === 'forged' || (trust === 'unsealed' && seal?.isRequired === true)
  let { seq, hash: before } = head
  const records = toRecords(isForged ? [breakRow(head), ...rows] : rows).map((record): StoredChainedRecord => {
    seq++
    before = linkHash(before, head.chain, seq, record)
    const stored = storedRecord(record, contexts.get(record.id))
    return { ...stored, chain: head.chain, chain_seq: seq, hash: before }
  })
  const next = { ...head, seq, hash: before, ...(isForged ? { broken_seq: head.seq } : {}) }
  const moved = seal !== undefined && (isForged || trust === 'sealed') ? seal.sign(next) : next
  if (tx.dialect === 'postgres') {
    await tx.run(insertAndAdvance(tx.dialect)({ ...moved, records: JSON.stringify(records) }))
    return
  }
  const { insert, advance } = statements(tx.dialect)
  for (const query of insert(records)) await tx.run(query)
  await tx.run(advance(moved))
}

const breakRow = ({ chain, seq }: ChainState): AuditEntry =>
  auditEntry({
    action: 'refuse',
    attribute: 'seal',
    value: `chain ${chain}, record ${seq}`,
    reason: 'the head of the chain was changed without the key of the audit',
  })

/** An entry about the audit itself. */
export function auditEntry(
  change: Pick<AuditEntry, 'action' | 'attribute' | 'value' | 'reason'>,
  by = 'gatehouse',
): AuditEntry {
  return {
    id: newId(),
    time: systemClock(),
    requestor: by,
    subject: 'audit',
    workflow: { id: newId(), name: 'audit' },
    target: 'audit',
    kind: 'audit',
    ...change,
  }
}

async function takeHead(tx: SqlTransaction, forTokens: boolean): Promise<ChainState> {
  const { free, given } = statements(tx.dialect)
  const [first, count] = forTokens ? [chains, tokenChains] : [0, chains]
  const chain = first + Math.floor(Math.random() * count)
  const [head] = await tx.query(asLists<HeadColumns>(free({ first, last: first + count - 1 })))
  const [taken] = head === undefined ? await tx.query(asLists<HeadColumns>(given({ chain }))) : [head]
  if (taken === undefined) throw new Error(`the audit has no chain ${chain}`)
  const [number, seq, hash, base_seq, base_hash, sealed_seq, sealed_at, broken_seq, key_id, mac] = taken
  return { chain: number, seq, hash, base_seq, base_hash, sealed_seq, sealed_at, broken_seq, key_id, mac }
}

/**
 * What a record's hash is over: the hash before it, its place and every column, in an order that never changes. Each
 * text stands behind its length, so that no two records read alike.
 */
export function linkHash(before: string, chain: number, number: number, r: RecordColumns): string {
  const who = `${part(r.requestor)}${part(r.requestor_key)}${part(r.subject)}${part(r.subject_key)}${part(r.caller)}`
  const why = `${part(r.workflow_id)}${part(r.workflow_name)}${part(r.request_id)}${part(r.approval)}${part(r.reason)}`
  const what = `${part(r.target)}${part(r.changes)}`
  return hash('sha256', `${before} ${chain} ${number} ${r.time} ${part(r.id)}${who}${why}${what}`, 'base64url')
}

const part = (text: string | null): string => (text === null ? '-' : `${text.length}:${text}`)
