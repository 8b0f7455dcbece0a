/** Which record is meant: of one issuer, one kind of thing, by the hash of its id. */
export interface IssuerKey {
  readonly issuer: string
  /** What it is: a code, a grant, a refresh token. */
  readonly model: string
  readonly id: string
}

/** Something that an own issuer keeps between two requests. */
export interface IssuerRecord extends IssuerKey {
  /** The hash of the grant that it belongs to, and goes with. */
  readonly grantId?: string
  /** The hash of the code that a person types for it. */
  readonly userCode?: string
  /** Sealed by whoever keeps it. */
  readonly data: string
  readonly expires: Date
}

export interface StoredIssuerRecord extends IssuerRecord {
  /** Goes up with every change. */
  readonly version: number
  /** When it was used; what is to be used once is used no more. */
  readonly consumed: Date | undefined
}

export interface IssuerStore {
  /**
   * Puts a record there, or in the place of one that is; that it was consumed stays. Where a version is expected, only in
   * the place of that one (0: of none, or of one that has expired): false, and nothing changes, when there is another.
   */
  put(record: IssuerRecord, expected?: { readonly version: number; readonly now: Date }): Promise<boolean>
  /** Undefined when absent or expired. */
  find(key: IssuerKey, now: Date): Promise<StoredIssuerRecord | undefined>
  /** Undefined when absent or expired. */
  findByUserCode(
    key: Pick<IssuerKey, 'issuer' | 'model'> & { readonly userCode: string },
    now: Date,
  ): Promise<StoredIssuerRecord | undefined>
  /** False when it was consumed before, or is not there: of all who ask, one gets true. */
  consume(key: IssuerKey, now: Date): Promise<boolean>
  delete(key: IssuerKey): Promise<void>
  /** Removes what belongs to a grant; how much. */
  deleteOfGrant(key: Pick<IssuerKey, 'issuer' | 'model'> & { readonly grantId: string }): Promise<number>
  /** Removes what has expired; how much. */
  deleteExpired(now: Date): Promise<number>
}
