/** The kinds of differences, in the order of pages. */
export const differenceKinds = ['missing', 'different', 'extra', 'ambiguous', 'unknown'] as const
export const rowActions = ['report', 'create', 'change', 'deactivate', 'delete', 'removeMemberships'] as const
/** What takes access away. */
export const removals = ['deactivate', 'delete', 'removeMemberships'] as const
export const rowStates = ['reported', 'open', 'started', 'waiting', 'done', 'skipped', 'failed'] as const
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
export type DifferenceKind = (typeof differenceKinds)[number]
export type RowAction = (typeof rowActions)[number]
export type RowState = (typeof rowStates)[number]
export type PlanState = (typeof planStates)[number]
