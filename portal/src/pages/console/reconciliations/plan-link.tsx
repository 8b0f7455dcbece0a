import { Link } from '@tanstack/react-router'
import type { ConsolePlan } from '#features/portal/contract/console-reconciliations.ts'
import { useTranslation } from '../../../app/i18n.tsx'

/** A link to a plan, named after when it was requested. */
export function PlanLink({ plan: { id, created } }: { readonly plan: Pick<ConsolePlan, 'id' | 'created'> }) {
  const { t, dateTime } = useTranslation()
  return (
    <Link className="text-link" to="/console/plans/$id" params={{ id }}>
      {t('plans.of', { when: dateTime(created) })}
    </Link>
  )
}
