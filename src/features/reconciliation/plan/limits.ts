import type { ReconciliationLimits } from '#config/configuration/configuration.ts'
import type { ReconciliationAction } from '#features/reconciliation/contract/plan-words.ts'
import type { ComparedCounts } from './difference.ts'

/** What takes access away, and the word for it. */
const removals = {
  deactivate: 'deactivate',
  delete: 'delete',
  removeMemberships: 'take all memberships from',
} as const satisfies Partial<Record<ReconciliationAction, string>>

export const removing = Object.keys(removals) as (keyof typeof removals)[]

/** How many accounts of each action a plan has. */
export type ActionCounts = Readonly<Partial<Record<ReconciliationAction, number>>>

/** Why a plan must not be applied, as a sentence; undefined if it is within the limits. */
export function exceededLimit(
  limits: ReconciliationLimits,
  counts: Pick<ComparedCounts, 'target'>,
  actions: ActionCounts,
): string | undefined {
  const total = removing.reduce((sum, action) => sum + (actions[action] ?? 0), 0)
  const ofPercent = Math.ceil((counts.target * limits.percent) / 100)
  const most = Math.min(limits.accounts, ofPercent)
  if (total <= most) return undefined
  const parts = removing.flatMap((action) => {
    const count = actions[action] ?? 0
    return count === 0 ? [] : [`${removals[action]} ${count}`]
  })
  const limit =
    most === limits.accounts
      ? `${limits.accounts} (limits.accounts)`
      : `${ofPercent}, which are ${limits.percent} % (limits.percent)`
  return `The plan would ${parts.join(' and ')} of ${counts.target} accounts in scope. The limit is ${limit}.`
}
