import type { KeyObject } from 'node:crypto'
import type { AuditAnchor, AuditEntry, AuditLink } from '#domain/audit.ts'

export interface AuditQuery {
  /** All that are given must hold; logins are compared without regard to letter case. */
  readonly requestor?: string
  readonly subject?: string
  readonly workflowId?: string
  readonly target?: string
  readonly requestId?: string
  /** From this time on. */
  readonly from?: Date
  /** Before this time. */
  readonly until?: Date
  /** Continues behind a page: the `next` it came with. */
  readonly after?: string
  /** At most 500 rows come back, whatever is asked. */
  readonly limit: number
}

export interface AuditPage {
  /** Latest first. */
  readonly rows: readonly AuditEntry[]
  /** Where the following page starts; absent on the last one. */
  readonly next?: string
}

/** Rows that were written together, as they stand in their chain. */
export interface AuditRecord {
  /** Their place in the chain; absent for rows from before there were chains. */
  readonly link?: AuditLink
  /** In the order in which they were written. */
  readonly rows: readonly AuditEntry[]
}

export interface AuditExport {
  /** Oldest first. */
  readonly records: readonly AuditRecord[]
  /** Where the following page starts; absent on the last one. */
  readonly next?: string
}

/** A key of 256 bits that seals the audit, and the name by which a seal says that it needs this one. */
export interface AuditKey {
  readonly id: string
  readonly key: KeyObject
}

/**
 * - `changed`: the record, or the link to the one before it, is not what was written.
 * - `removed`: records are missing, this one first.
 * - `inserted`: the record was not written by this store.
 * - `forged`: head or base of the chain were changed by someone without the key.
 * - `broken`: they had been, when the gateway next wrote to the chain.
 * - `unsealed`: the chain has no seal, while others have one or this process has a key.
 * - `no key`: the seal needs a key that this process does not have.
 * - `older`: the database does not have this record yet, which an anchor or an export knows.
 * - `differs`: it has another record than the anchor or the export.
 * - `resealed`: the records were pruned before an operator sealed the chain again, so the anchor proves nothing of them.
 * - `invalid`: the anchor was not signed by a key that is known here.
 */
export interface AuditProblem {
  readonly kind:
    | 'changed'
    | 'removed'
    | 'inserted'
    | 'forged'
    | 'broken'
    | 'unsealed'
    | 'no key'
    | 'older'
    | 'differs'
    | 'resealed'
    | 'invalid'
  readonly chain?: number
  readonly number?: number
  /** Of the record's first row, where there is a record. */
  readonly id?: string
  /** The key that is missing. */
  readonly key?: string
}

export interface AuditReport {
  /** Records that were checked. */
  readonly checked: number
  /** Records from before there were chains, which nothing can be said of. */
  readonly unchained: number
  /** Whether every chain has a seal that is right. */
  readonly authenticated: boolean
  /**
   * When a chain was last sealed as it stood: of what was there before, or was removed by then, nothing is proven. Undefined
   * where no chain has a seal that is right.
   */
  readonly since: Date | undefined
  /** The same for decisions about tokens, where their chains were sealed later than the others. */
  readonly tokensSince?: Date
  /** Records up to `number` were there already when their chain was sealed: only what happened since `at` is proven. */
  readonly sealed: readonly { readonly chain: number; readonly number: number; readonly at: Date }[]
  /** Records up to `number` were pruned. */
  readonly pruned: readonly { readonly chain: number; readonly number: number }[]
  /** Empty when everything is as it was written. The first 100, chain by chain. */
  readonly problems: readonly AuditProblem[]
}

/** Of what someone kept outside the database. */
export interface AuditComparison {
  /** Heads or records that were compared. */
  readonly compared: number
  /** Records that were pruned since, which cannot be compared. */
  readonly pruned: number
  readonly problems: readonly AuditProblem[]
}

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

/** Decisions about tokens, or everything else. */
export type AuditPart = 'tokens' | 'others'

export interface AuditPruning {
  /** Who prunes, for the audit entry. */
  readonly by: string
  /** Only these; all when absent. Decisions about tokens from before they had chains of their own are among the others. */
  readonly part?: AuditPart
  /** Removes also what a configured audit sink has not received. */
  readonly unsent?: boolean
}

export interface PrunedAudit {
  /** Records that were removed. */
  readonly removed: number
  /** Audit sinks for which older records were kept, since they have not received them. */
  readonly waiting: readonly string[]
}

/**
 * Rows are only ever added. Each record's hash covers the record and the hash of the one before it in its chain; there
 * are several chains, so that concurrent writers do not wait for each other. Head and base of a chain are
 * sealed with a key that is not in the database, by every commit that moves them.
 */
export interface AuditStore {
  /** All rows or none. Throws CONFLICT when the same rows were written before. */
  append(rows: readonly AuditEntry[]): Promise<void>
  /**
   * Appends as part of a transaction of another store, so that a change and its audit are one commit. False, and nothing
   * is written, when the transaction is not one of this database.
   */
  appendWithin(transaction: object, rows: readonly AuditEntry[]): Promise<boolean>
  /** Throws BAD_REQUEST for an `after` that no page gave. */
  list(query: AuditQuery): Promise<AuditPage>
  /** At most 500 records. Throws BAD_REQUEST for an `after` that no page gave. */
  export(query: Pick<AuditQuery, 'from' | 'until' | 'after' | 'limit'>): Promise<AuditExport>
  /** Walks all chains, in bounded memory, while others append. */
  verify(): Promise<AuditReport>
  /**
   * To be called by a gateway before it writes. Seals the chains of a database that has no seals yet, with an audit entry,
   * and seals again what an older key sealed. Throws INTERNAL without a key, or where a seal needs one that this process
   * does not have.
   */
  authenticate(): Promise<AuditSealing>
  /** Accepts all chains in their current state, even with forged seals, and writes an entry. Throws INTERNAL without a key. */
  seal(by: string): Promise<AuditSealing>
  /** The heads as of now, of chains whose seal is right. Undefined without a key, or where no chain has records. */
  anchor(): Promise<AuditAnchor | undefined>
  /** Compares the chains with anchors, at most 100 at a time. Trust the result only if `verify` has found no problem. */
  compareAnchors(anchors: readonly AuditAnchor[]): Promise<AuditComparison>
  /** Compares the chains with exported records, of which some rows may be missing, at most 500 at a time; the same holds. */
  compareRecords(records: readonly AuditRecord[]): Promise<AuditComparison>
  /** How many records there are. Costs little. */
  size(): Promise<Readonly<Record<AuditPart, number>>>
  /** Since when records may be kept so that at most `most` of them are; undefined where there are no more. */
  keptSince(part: AuditPart, most: number): Promise<Date | undefined>
  /** Removes what was written before then, from the beginning of each chain, and writes an entry. */
  prune(before: Date, options: AuditPruning): Promise<PrunedAudit>
}
