/**
 * How a person or an account of the two systems compares, in the order of pages. `missing`: the target has no account for the
 * person. `different`: it has one with other values or groups. `extra`: no person in scope has the account. `ambiguous`: the
 * rules find several accounts for a person, or several persons for an account. `unknown`: one side could not be read or
 * mapped. Accounts that agree have no difference.
 */
export const differenceKinds = ['missing', 'different', 'extra', 'ambiguous', 'unknown'] as const
export type DifferenceKind = (typeof differenceKinds)[number]

/** What to do about a difference. */
export const reconciliationActions = [
  'report',
  'create',
  'change',
  'deactivate',
  'delete',
  'removeMemberships',
] as const
export type ReconciliationAction = (typeof reconciliationActions)[number]

/** What takes access away. */
export const removals = ['deactivate', 'delete', 'removeMemberships'] as const satisfies readonly ReconciliationAction[]

/**
 * `reported`: nothing is to be done about it. `open`: not yet. `started`: its run changes the account. `waiting`: the run
 * waits for an approver or an operator. `done`: the account was read again and agrees. The others have a reason.
 */
export const rowStates = ['reported', 'open', 'started', 'waiting', 'done', 'skipped', 'failed'] as const
export type RowState = (typeof rowStates)[number]

/**
 * `requested` until a gateway compares. A `planned` one waits for approval. `paused` by a person, or until a system
 * answers again. `applied`: every row was handled, though runs may still wait for approvers. `stopped` by a limit or a
 * person. `expired`: a newer plan took its place, or it is too old.
 */
export const planStates = [
  'requested',
  'comparing',
  'planned',
  'applying',
  'paused',
  'applied',
  'stopped',
  'failed',
  'expired',
] as const
export type PlanState = (typeof planStates)[number]
