/**
 * - `changed`: the record, or its link to the previous one, is not what was written.
 * - `removed`: records are missing, this one first.
 * - `inserted`: this store did not write the record.
 * - `forged`: someone without the key changed head or base of the chain.
 * - `broken`: they had been forged when the gateway next wrote to the chain.
 * - `unsealed`: the chain has no seal, while others have one or this process has a key.
 * - `no key`: the seal needs a key that this process does not have.
 * - `older`: an anchor or an export has this record, and the database does not have it yet.
 * - `differs`: the database has another record than the anchor or the export.
 * - `resealed`: the records were pruned before an operator sealed the chain again, so the anchor proves nothing
 * about them.
 * - `invalid`: no known key signed the anchor.
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
  /** The time of the record's first entry, if there is a record. */
  readonly id?: string
  /** The missing key. */
  readonly key?: string
}

export interface AuditReport {
  /** The number of checked records. */
  readonly checked: number
  /** Whether every chain has a valid seal. */
  readonly authenticated: boolean
  /**
   * When a chain was last sealed in its existing state: nothing is proven about what was there before, or was
   * removed by then. Undefined if no chain has a valid seal.
   */
  readonly since: Date | undefined
  /** Records up to `number` existed already when their chain was sealed: only what happened since `at` is proven. */
  readonly sealed: readonly { readonly chain: number; readonly number: number; readonly at: Date }[]
  /** Records up to `number` were pruned. */
  readonly pruned: readonly { readonly chain: number; readonly number: number }[]
  /** Empty if everything is as it was written. The first 100, chain by chain. */
  readonly problems: readonly AuditProblem[]
}
