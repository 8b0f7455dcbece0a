import type { ReconciliationLimits } from '#config/configuration/configuration.ts'
import type { ReconciliationAction } from '#features/reconciliation/contract/plan-words.ts'
import type { ComparedCounts, Difference } from './difference.ts'

/** What takes access away, and the word for it. */
const removals = {
  deactivate: 'deactivate',
  delete: 'delete',
  removeMemberships: 'take all memberships from',
  change: 'by changes deactivate or take all memberships from',
} as const satisfies Partial<Record<ReconciliationAction, string>>

const removing = Object.keys(removals) as (keyof typeof removals)[]

/** Whether the limits count it. */
export const takesAccess = ({ action, removes }: Pick<Difference, 'action' | 'removes'>): boolean =>
  action === 'change' ? removes === true : Object.hasOwn(removals, action)

/** How many accounts of each action a plan has. */
export type ActionCounts = Readonly<Partial<Record<ReconciliationAction, number>>>

interface LimitedCounts extends Pick<ComparedCounts, 'target'> {
  readonly actions: ActionCounts
  /** How many of the changes take access away. */
  readonly removes: number
}

/** Why a plan must not be applied, as a sentence; undefined if it is within the limits. */
export function exceededLimit(
  limits: ReconciliationLimits,
  { target, actions, removes }: LimitedCounts,
): string | undefined {
  const removed: ActionCounts = { ...actions, change: removes }
  const total = removing.reduce((sum, action) => sum + (removed[action] ?? 0), 0)
  const ofPercent = Math.ceil((target * limits.percent) / 100)
  const most = Math.min(limits.accounts, ofPercent)
  if (total <= most) return undefined
  const parts = removing.flatMap((action) => {
    const count = removed[action] ?? 0
    return count === 0 ? [] : [`${removals[action]} ${count}`]
  })
  const limit =
    most === limits.accounts
      ? `${limits.accounts} (limits.accounts)`
      : `${ofPercent}, which are ${limits.percent} % (limits.percent)`
  return `The plan would ${parts.join(' and ')} of ${target} accounts in scope. The limit is ${limit}.`
}
