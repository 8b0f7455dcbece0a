import type { DifferenceKind, ReconciliationAction } from '#features/reconciliation/contract/plan-words.ts'
import type { CountedKey, MessageKey } from '../app/messages.ts'

export const kindTexts: Readonly<Record<DifferenceKind, MessageKey>> = {
  missing: 'kind.missing',
  different: 'kind.different',
  extra: 'kind.extra',
  ambiguous: 'kind.ambiguous',
  unknown: 'kind.unknown',
}

export const actionTexts: Readonly<Record<ReconciliationAction, MessageKey>> = {
  report: 'action.of.report',
  create: 'action.of.create',
  change: 'action.of.change',
  deactivate: 'action.of.deactivate',
  delete: 'action.of.delete',
  removeMemberships: 'action.of.removeMemberships',
}

/** What the rows with an action do together. */
export const doesTexts: Readonly<Record<Exclude<ReconciliationAction, 'report'>, CountedKey>> = {
  create: 'plans.does.create',
  change: 'plans.does.change',
  deactivate: 'plans.does.deactivate',
  delete: 'plans.does.delete',
  removeMemberships: 'plans.does.removeMemberships',
}
