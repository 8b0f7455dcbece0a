import type { ConsolePlan } from '#features/portal/contract/console-reconciliations.ts'
import { reconciliationActions } from '#features/reconciliation/contract/plan-words.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { Status } from '../../../components/status.tsx'
import { planLooks } from './plan-looks.ts'

/** The state of a plan. One that only reports waits for no one. */
export function PlanStatus({ plan: { state, counts } }: { readonly plan: Pick<ConsolePlan, 'state' | 'counts'> }) {
  const { t } = useTranslation()
  const isReport = reconciliationActions.every((action) => action === 'report' || counts.actions[action] === 0)
  if (state === 'planned' && isReport) return <Status tone="plain" icon="check" text={t('rowState.reported')} />
  return <Status {...planLooks[state]} text={t(planLooks[state].text)} />
}
