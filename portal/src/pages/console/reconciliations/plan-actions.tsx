import { Button, Group, Text } from '@mantine/core'
import { useState } from 'react'
import type { ConsolePlanDetails } from '#features/portal/contract/console-reconciliations.ts'
import { type PlanState, reconciliationActions, removals } from '#features/reconciliation/contract/plan-words.ts'
import { changePlan, type PlanChange } from '../../../api/reconciliations.ts'
import { useConfig } from '../../../app/config.tsx'
import { useTranslation } from '../../../app/i18n.tsx'
import type { MessageKey } from '../../../app/messages.ts'
import { ReasonDialog } from '../../../components/reason-dialog.tsx'
import { doesTexts } from '../../../components/row-texts.ts'
import { planLooks } from './plan-looks.ts'
import { RequestPlanButton } from './request-plan-button.tsx'

const pausable: ReadonlySet<PlanState> = new Set(['requested', 'comparing', 'applying'])
const ended: ReadonlySet<PlanState> = new Set(['applied', 'stopped', 'failed', 'expired'])

/** What an operator can do with a plan in its state. */
export function PlanActions({ plan }: { readonly plan: ConsolePlanDetails }) {
  const { t } = useTranslation()
  const { operator } = useConfig()
  const [asked, setAsked] = useState<PlanChange>()
  const { state, own, rows, reconciliation } = plan
  if (!operator) return null
  const canApply = state === 'planned' && rows.open > 0
  return (
    <>
      <Group gap="sm">
        {canApply && !own && <Button onClick={() => setAsked('apply')}>{t('plans.apply')}</Button>}
        {state === 'paused' && <Button onClick={() => setAsked('resume')}>{t('plans.resume')}</Button>}
        {pausable.has(state) && (
          <Button variant="default" onClick={() => setAsked('pause')}>
            {t('plans.pause')}
          </Button>
        )}
        {!ended.has(state) && (
          <Button variant="default" onClick={() => setAsked('stop')}>
            {t('plans.stop')}
          </Button>
        )}
        {(ended.has(state) || state === 'planned') && <RequestPlanButton name={reconciliation} />}
      </Group>
      {canApply && own && <Text c="dimmed">{t('plans.own')}</Text>}
      {asked !== undefined && <ChangeDialog plan={plan} change={asked} onClose={() => setAsked(undefined)} />}
    </>
  )
}

/** What applying the plan does, and how many accounts lose access if any do. */
export function usePlanEffect({ counts: { actions, target, removes } }: Pick<ConsolePlanDetails, 'counts'>) {
  const { tn, number } = useTranslation()
  const does = reconciliationActions.flatMap((action) =>
    action === 'report' || actions[action] === 0 ? [] : [tn(doesTexts[action], actions[action])],
  )
  const removed = removals.reduce((sum, action) => sum + actions[action], removes)
  const losing = removed > 0 ? tn('plans.removes', removed, { of: number(target) }) : undefined
  return { does: `${does.join(' · ')}.`, losing }
}

const changeTexts: Readonly<Record<PlanChange, { readonly title: MessageKey; readonly text: MessageKey }>> = {
  apply: { title: 'plans.apply', text: 'plans.applyText' },
  pause: { title: 'plans.pause', text: 'plans.pauseText' },
  resume: { title: 'plans.resume', text: 'plans.resumeText' },
  stop: { title: 'plans.stop', text: 'plans.stopText' },
}

interface ChangeDialogProps {
  readonly plan: ConsolePlanDetails
  readonly change: PlanChange
  readonly onClose: () => void
}

function ChangeDialog({ plan, change, onClose }: ChangeDialogProps) {
  const { t } = useTranslation()
  // The plan that the user decided about, although the page is read again.
  const [seen] = useState(plan)
  const { does, losing } = usePlanEffect(seen)
  const isApply = change === 'apply'
  const { title, text } = changeTexts[change]
  return (
    <ReasonDialog
      title={t(title)}
      text={isApply ? `${does} ${t(text)}` : t(text)}
      isHarmful={change === 'stop' || (isApply && losing !== undefined)}
      {...(isApply && losing !== undefined ? { warning: losing } : {})}
      changed={t('plans.changed')}
      send={(reason) => changePlan(seen, change, reason)}
      done={({ state }) => t('plans.isNow', { state: t(planLooks[state].text) })}
      onClose={onClose}
    />
  )
}
