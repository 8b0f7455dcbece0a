import type { Difference } from '#features/reconciliation/plan/difference.ts'
import { noCounts, type PlanCounts } from '#features/reconciliation/store/plan-record.ts'

/** A person without an account. */
export const missingAccount = (login: string, more: Partial<Difference> = {}): Difference => ({
  key: `missing ${login}`,
  kind: 'missing',
  action: 'create',
  source: { id: `id of ${login}`, login },
  attributes: [{ name: 'mail', from: [], to: [`${login}@example.com`] }],
  groups: { add: [], remove: [] },
  reason: `${login} has no account.`,
  ...more,
})

/** The counts of a comparison with these differences. */
export function countsOf(differences: readonly Difference[], agree = 0): PlanCounts {
  const kinds = { ...noCounts.differences }
  const actions = { ...noCounts.actions }
  for (const { kind, action } of differences) {
    kinds[kind]++
    actions[action]++
  }
  const source = differences.filter((each) => each.source !== undefined).length + agree
  const target = differences.filter((each) => each.target !== undefined).length + agree
  const removing = differences.filter(({ removes }) => removes).length
  return { source, target, agree, differences: kinds, actions, removes: removing }
}
