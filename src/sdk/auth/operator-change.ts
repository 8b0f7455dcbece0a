/** An operator changes something of another user: who, why and by which request, for the audit. */
export interface OperatorChange {
  /** The operator's login. */
  readonly by: string
  readonly reason: string
  readonly requestId: string
}
