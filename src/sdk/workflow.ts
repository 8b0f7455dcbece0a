import type { User } from '#identity/user.ts'

export interface WorkflowCall {
  readonly name: string
  /** The authenticated caller; never a value the caller chose. */
  readonly requestor: string
  readonly user: User
  /** The user's groups are not known here, so memberships stay as they are unless a task loads or changes them. */
  readonly keepGroups?: boolean
  readonly reason?: string
  /** Set at a target by the first task that sets passwords; never logged or stored. */
  readonly password?: string
  /** The HTTP request that asked for it, as in the access log; it stands in the audit. */
  readonly requestId?: string
  /** The request map. Engine keys in it are refused. */
  readonly params: Readonly<Record<string, string>>
}

export interface WorkflowResult {
  readonly id: string
  /** How many changes the run made to targets. */
  readonly changes: number
}
