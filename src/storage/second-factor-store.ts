import type { AuditEntry } from '#domain/audit.ts'

export interface StoredFactor {
  readonly id: string
  /** The key of the owner's identity. */
  readonly owner: string
  readonly kind: string
  readonly name: string
  /** Sealed. */
  readonly data: string
  readonly counter: number
  readonly created: Date
  readonly lastUsed: Date | undefined
}

export interface NewStoredFactor extends Omit<StoredFactor, 'created' | 'lastUsed'> {
  /** The key of the name that the owner's entry has now. */
  readonly ownerName: string
}

/** Second factors and recovery codes. What is written down about a change is written with it, or neither. */
export interface SecondFactorStore {
  /** Earliest first. */
  ofOwner(owner: string): Promise<readonly StoredFactor[]>
  /**
   * `refused` when there is one of this id, or the owner has `limit` already. Codes are kept where the owner has none.
   * Of two that are added side by side to the same place, one is refused.
   */
  add(
    factor: NewStoredFactor,
    limit: number,
    codes: readonly string[],
    audit: readonly AuditEntry[],
  ): Promise<'refused' | 'added' | 'added with codes'>
  /** Gives what belongs to one key to another that has nothing, as rows from before identities to their owner. */
  adopt(from: string, to: string): Promise<void>
  /** Moves the counter; false when it does not stand at `from`, as when another request was first. */
  use(factor: Pick<NewStoredFactor, 'id' | 'owner' | 'ownerName'>, from: number, to: number): Promise<boolean>
  rename(id: string, owner: string, name: string): Promise<boolean>
  /** With the last factor the recovery codes go too. */
  remove(id: string, owner: string, audit: readonly AuditEntry[]): Promise<boolean>
  /** Of the one who last used a factor under this name, with the recovery codes; how many factors there were. */
  removeAllOfName(ownerName: string, audit: readonly AuditEntry[]): Promise<number>
  /** How many are left. */
  recoveryCodes(owner: string): Promise<number>
  /** Those from before are worth nothing. False, and nothing is written, for somebody without a factor. */
  replaceRecoveryCodes(owner: string, codes: readonly string[], audit: readonly AuditEntry[]): Promise<boolean>
  /** True once for each code. */
  useRecoveryCode(owner: string, code: string, audit: readonly AuditEntry[]): Promise<boolean>
}
