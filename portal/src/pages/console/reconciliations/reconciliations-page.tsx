import { Text } from '@mantine/core'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ConsoleReconciliation } from '#features/portal/contract/console-reconciliations.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { consolePath } from '../../../api/console.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { DriftText } from '../../../components/drift-text.tsx'
import { ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { FilterForm, filled } from '../filter-form.tsx'
import { PlanLink } from './plan-link.tsx'
import { PlanStatus } from './plan-status.tsx'

const route = getRouteApi('/console/reconciliations')

/** The reconciliations of the configuration, each with what its last comparison found. */
export function ReconciliationsPage() {
  const { t } = useTranslation()
  const { q } = route.useSearch()
  const navigate = route.useNavigate()
  return (
    <ConsolePage title={t('page.reconciliations')} intro={t('drift.intro')}>
      <ConsoleList<ConsoleReconciliation>
        label={t('page.reconciliations')}
        path={consolePath(consoleRoutes.listReconciliations)}
        filter={{ q }}
        empty={t('drift.none')}
        everyMillis={10_000}
        columns={[
          {
            key: 'name',
            name: t('drift.name'),
            width: 12,
            cell: ({ name, description, source, target }) => (
              <>
                <Link className="text-link" to="/console/reconciliations/$name" params={{ name }}>
                  {isolated(name)}
                </Link>
                {description !== '' && <Text size="sm">{isolated(description)}</Text>}
                <Text size="sm" c="dimmed">{`${isolated(source)} → ${isolated(target)}`}</Text>
              </>
            ),
          },
          { key: 'drift', name: t('drift.last'), width: 18, cell: (row) => <DriftText {...row} /> },
          {
            key: 'plan',
            name: t('plans.latest'),
            width: 12,
            cell: ({ plan }) =>
              plan === undefined ? (
                ''
              ) : (
                <>
                  <PlanLink plan={plan} />
                  <PlanStatus plan={plan} />
                </>
              ),
          },
        ]}
      >
        <FilterForm
          fields={[{ name: 'q', label: t('drift.search') }]}
          values={{ q }}
          onApply={(next) => void navigate({ search: filled(next), replace: true })}
        />
      </ConsoleList>
    </ConsolePage>
  )
}
