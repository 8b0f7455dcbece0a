/** The position of a record, by which a receiver recognizes a duplicate, and its hash. */
export interface AuditLink {
  readonly chain: number
  readonly number: number
  readonly hash: string
}
