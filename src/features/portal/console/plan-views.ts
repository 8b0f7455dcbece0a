import {
  type ConsolePlan,
  consolePlan,
  type DriftReport,
  driftReport,
  type PlanRowView,
  planRow,
} from '#features/portal/contract/console-reconciliations.ts'
import type { Plan, PlanRow, ReconciliationReport } from '#features/reconciliation/store/plan-record.ts'
import { isSecretAttribute } from '#identity/attributes.ts'
import { withoutTokens } from '#kernel/text/redaction.ts'
import { wireForm } from '#kernel/wire.ts'
import { shownValues } from './entry-attributes.ts'

/** Without the decision whose identity it is, and the logins of all changed people. */
export const shownPlan = (plan: Plan): ConsolePlan =>
  wireForm(consolePlan, {
    ...plan,
    people: plan.people?.length,
    reason: shownText(plan.reason),
    problem: shownText(plan.problem),
    approval: plan.approval && { ...plan.approval, reason: shownText(plan.approval.reason) },
  })

export const shownReport = (report: ReconciliationReport): DriftReport => wireForm(driftReport, report)

/** Without secrets, with values of a length that a page can show. */
export function shownRow({ difference, reason, ...row }: PlanRow): PlanRowView {
  const { attributes, ...same } = difference
  return wireForm(planRow, {
    ...same,
    ...row,
    outcome: shownText(reason),
    attributes: attributes.map(({ name, from, to }) =>
      isSecretAttribute(name)
        ? { name, from: [], to: [] }
        : { name, from: shownValues(from).values, to: shownValues(to).values },
    ),
  })
}

export const shownText = (text: string | undefined): string | undefined => text && withoutTokens(text)
