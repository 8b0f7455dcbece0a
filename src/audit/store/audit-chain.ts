import { hash } from 'node:crypto'
import { type AuditSeal, authenticity, type ChainState, missingKey } from '#database/audit-seal.ts'
import type { DatabaseReader, DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { columnName, columns, RowInsert, statement } from '#database/statement.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import {
  type AuditContext,
  type AuditRecordRow,
  recordProperties,
  type StoredRecord,
  storedRecord,
  toRecords,
} from './audit-record.ts'

const chains = 16
const tokenChains = 4

/** As created by the migration. Decisions about tokens use the last ones, so that they can be pruned separately. */
export const auditChains: readonly number[] = Array.from({ length: chains + tokenChains }, (_, chain) => chain)

export const isTokenChain = (chain: number): boolean => chain >= chains

/** A record with its position. */
export type ChainedRecord = AuditRecordRow & {
  readonly chain: number
  readonly chainSeq: number
  readonly hash: string
}

export const chainedRecord = columns([...recordProperties, 'chain', 'chainSeq', 'hash'])

/** The bytes of a record's texts: callers choose how long their values are. */
export const recordSize = 'octet_length(changes) + coalesce(octet_length(reason), 0) as size'

/** How many of the next records to read: those that have at most `bytes` together, and at least one. */
export function countWithin(bytes: number, sizes: readonly { readonly size: number }[]): number {
  let sum = 0
  const first = sizes.findIndex(({ size }) => {
    sum += size
    return sum > bytes
  })
  return first < 0 ? Math.max(1, sizes.length) : Math.max(1, first)
}

export const chainState = columns([
  'chain',
  'seq',
  'hash',
  'baseSeq',
  'baseHash',
  'sealedSeq',
  'sealedAt',
  'brokenSeq',
  'keyId',
  'mac',
])

/**
 * The hash of a record: over the previous hash, its position and every column, in an order that never changes. Each
 * text follows its length, so that no two records have the same text.
 */
export function linkHash(before: string, chain: number, number: number, r: AuditRecordRow): string {
  const who = `${part(r.requestor)}${part(r.requestorKey)}${part(r.subject)}${part(r.subjectKey)}${part(r.caller)}`
  const why = `${part(r.workflowId)}${part(r.workflowName)}${part(r.requestId)}${part(r.approval)}${part(r.reason)}`
  const what = `${part(r.target)}${part(r.changes)}`
  return hash('sha256', `${before} ${chain} ${number} ${r.time} ${part(r.id)}${who}${why}${what}`, 'base64url')
}

const part = (text: string | null): string => (text === null ? '-' : `${text.length}:${text}`)

/** The contexts are the stored ones, by the id of their entry; other entries are stored whole. */
interface Appended {
  readonly entries: readonly AuditEntry[]
  readonly contexts?: ReadonlyMap<string, AuditContext>
}

/**
 * Writes entries as the next records of a chain, and seals its new head: at the end of the commit, once for all
 * transactions that share it. Call it last in a transaction, since others may wait for the head. Throws INTERNAL if the
 * chain is sealed with an unknown key.
 */
export async function appendToChain(
  tx: DatabaseTransaction,
  entries: readonly AuditEntry[],
  contexts?: ReadonlyMap<string, AuditContext>,
): Promise<void> {
  const appended: Appended = { entries, ...(contexts && { contexts }) }
  const write = entries.length > 0 && entries.every(({ kind }) => kind === 'token') ? writeTokens : writeOthers
  if (tx.leaveToEnd?.(appended, write) !== true) await write(tx, [appended])
}

const writeTokens = (tx: DatabaseTransaction, all: readonly Appended[]): Promise<void> => writeRecords(tx, all, true)
const writeOthers = (tx: DatabaseTransaction, all: readonly Appended[]): Promise<void> => writeRecords(tx, all, false)

/** The new head does not hide a forged one: an entry before the others records the forgery, and the chain keeps the mark. */
async function writeRecords(tx: DatabaseTransaction, all: readonly Appended[], areTokens: boolean): Promise<void> {
  const head = await takeHead(tx, areTokens)
  const { seal } = tx
  const trust = authenticity(seal, head)
  if (trust === 'no key') throw missingKey(head.keyId)
  const isForged = trust === 'forged' || (trust === 'unsealed' && seal?.isRequired === true)
  const records: StoredLink[] = []
  let { seq, hash: before } = head
  for (const { entries, contexts } of isForged ? [{ entries: [forgeryEntry(head)] }, ...all] : all) {
    for (const record of toRecords(entries)) {
      seq++
      before = linkHash(before, head.chain, seq, record)
      const stored = storedRecord(record, contexts?.get(record.id))
      records.push({ ...stored, chain: head.chain, chainSeq: seq, hash: before })
    }
  }
  const next = { ...head, seq, hash: before, ...(isForged ? { brokenSeq: head.seq } : {}) }
  const moved = seal !== undefined && (isForged || trust === 'sealed') ? seal.sign(next) : next
  if (tx.dialect === 'postgres') {
    insertAndMoveHead.send(tx, { ...moved, records: JSON.stringify(records) })
    return
  }
  insertRecords.run(tx, records)
  await moveHead.run(tx, moved)
}

/** `appendToChain` for a change that may have no entries. */
export async function appendAudit(tx: DatabaseTransaction, entries: readonly AuditEntry[]): Promise<void> {
  if (entries.length > 0) await appendToChain(tx, entries)
}

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

const forgeryEntry = ({ chain, seq }: ChainState): AuditEntry =>
  auditEntry({
    action: 'refuse',
    attribute: 'seal',
    value: `chain ${chain}, record ${seq}`,
    reason: 'the head of the chain was changed without the key of the audit',
  })

async function takeHead(tx: DatabaseTransaction, forTokens: boolean): Promise<ChainState> {
  const [first, count] = forTokens ? [chains, tokenChains] : [0, chains]
  const free = await lockFreeChain.first(tx, { first, last: first + count - 1 })
  if (free !== undefined) return free
  const chain = first + Math.floor(Math.random() * count)
  const head = await lockChain.first(tx, { chain })
  if (head === undefined) throw new Error(`the audit has no chain ${chain}`)
  return head
}

/**
 * A head stays locked until its transaction ends. PostgreSQL takes one that no other transaction has; SQLite has
 * one writer, for which one chain is enough.
 */
const lockFreeChain = statement<{ first: number; last: number }, ChainState>(({ name, forUpdateSkipLocked }) =>
  name === 'sqlite'
    ? `select ${chainState} from audit_chains where chain = :first`
    : `select ${chainState} from audit_chains where chain >= :first and chain <= :last limit 1 ${forUpdateSkipLocked}`,
)
export const lockChain = statement<{ chain: number }, ChainState>(
  (on) => `select ${chainState} from audit_chains where chain = :chain ${on.forUpdate}`,
)

type StoredLink = ChainedRecord & StoredRecord

const stored = [...recordProperties, 'context', 'chain', 'chainSeq', 'hash'] as const
const insertRecords = new RowInsert<StoredLink>('audit', stored)

const setHead = `update audit_chains
  set seq = :seq, hash = :hash, broken_seq = :brokenSeq, key_id = :keyId, mac = :mac where chain = :chain`
const moveHead = statement<ChainState>(setHead)

const numbers: ReadonlySet<string> = new Set(['time', 'chain', 'chainSeq'])
/** Writes records and head in one statement, which saves PostgreSQL a round trip. */
const insertAndMoveHead = statement<ChainState & { readonly records: string }>(
  `with head as (${setHead})
   insert into audit (${stored.map(columnName).join(', ')})
   select ${stored.map((name) => `"${name}"`).join(', ')}
   from json_to_recordset(cast(:records as json))
     as record(${stored.map((name) => `"${name}" ${numbers.has(name) ? 'bigint' : 'text'}`).join(', ')})
   order by "chainSeq"`,
)

/** The current state of all chains, in one snapshot. */
export const readChains = (client: DatabaseReader): Awaitable<ChainState[]> => findChains.all(client, {})

export interface AuditSealing {
  /** Whether this call sealed the chains, with or without records. */
  readonly sealed: boolean
  /** Existing records that this call sealed. */
  readonly records: number
  /** Chains whose head or base is not authentic. */
  readonly forged: readonly number[]
  /** Ids of keys that this process does not have and whose seals this call replaced. */
  readonly replacedKeys?: readonly string[]
}

/** Seals a database that has no seals, and seals again what an older key sealed. */
export async function authenticateAudit(client: SqlClient, seal: AuditSeal | undefined): Promise<AuditSealing> {
  if (seal === undefined) throw noKey()
  const found = await readChains(client)
  const needsWork = found.some((chain) => chain.mac === null || !seal.isCurrent(chain))
  const records = needsWork ? await client.transaction((tx) => sealMissing(tx, seal)) : undefined
  const now = await readChains(client)
  const unknown = now.find((chain) => seal.check(chain) === 'no key')
  if (unknown !== undefined) throw missingKey(unknown.keyId)
  seal.isRequired = true
  const forged = now.flatMap((chain) => (seal.check(chain) === 'sealed' ? [] : [chain.chain]))
  return { sealed: records !== undefined, records: records ?? 0, forged }
}

/**
 * How many existing records were sealed; undefined if there are seals. If only some chains have a seal, this isn't
 * the first start: the others are left for `verify` to report.
 */
async function sealMissing(tx: DatabaseTransaction, seal: AuditSeal): Promise<number | undefined> {
  const chains = await lockChains.all(tx, {})
  if (chains.every(({ mac }) => mac === null)) return await sealAll(tx, seal, chains, 'gatehouse')
  for (const chain of chains) {
    if (seal.check(chain) === 'sealed' && !seal.isCurrent(chain)) await setSeal.run(tx, seal.sign(chain))
  }
  return undefined
}

/** Accepts the current state of every chain. */
export async function resealAudit(client: SqlClient, seal: AuditSeal | undefined, by: string): Promise<AuditSealing> {
  if (seal === undefined) throw noKey()
  return await client.transaction(async (tx) => {
    const chains = await lockChains.all(tx, {})
    const unknown = chains.filter((chain) => seal.check(chain) === 'no key')
    const replacedKeys = [...new Set(unknown.flatMap(({ keyId }) => keyId ?? []))]
    return { sealed: true, records: await sealAll(tx, seal, chains, by), forged: [], replacedKeys }
  })
}

/** An empty audit needs no entry. */
async function sealAll(
  tx: DatabaseTransaction,
  seal: AuditSeal,
  chains: readonly ChainState[],
  by: string,
): Promise<number> {
  const sealedAt = systemClock().getTime()
  for (const chain of chains) {
    await setSeal.run(tx, seal.sign({ ...chain, sealedSeq: chain.seq, sealedAt, brokenSeq: null }))
  }
  const filled = chains.filter(({ seq, baseSeq }) => seq > baseSeq)
  if (filled.length > 0) {
    const value = filled.map(({ chain, seq }) => `chain ${chain}, record ${seq}`).join('; ')
    const reason = 'the records up to these were sealed in their current state'
    await appendToChain(tx, [auditEntry({ action: 'add', attribute: 'seal', value, reason }, by)])
  }
  return filled.reduce((sum, { seq, baseSeq }) => sum + seq - baseSeq, 0)
}

const noKey = (): GatewayError => new GatewayError('INTERNAL', 'no key to seal the audit with')

const findChains = statement<object, ChainState>(`select ${chainState} from audit_chains order by chain`)
const lockChains = statement<object, ChainState>(
  (on) => `select ${chainState} from audit_chains order by chain ${on.forUpdate}`,
)
const setSeal = statement<ChainState>(
  `update audit_chains set sealed_seq = :sealedSeq, sealed_at = :sealedAt, broken_seq = :brokenSeq, key_id = :keyId, mac = :mac
   where chain = :chain`,
)
