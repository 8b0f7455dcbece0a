import { getRouteApi, Link } from '@tanstack/react-router'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type { ConsoleWorkflow } from '#features/portal/contract/console-workflows.ts'
import { consolePath } from '../../../api/console.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { stateLooks } from '../../../components/request-states.ts'
import { type ConsoleColumn, ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { FilterForm, filled } from '../filter-form.tsx'

const route = getRouteApi('/console/workflows')

/** The workflows of the configuration. */
export function WorkflowsPage() {
  const { t, number } = useTranslation()
  const { q } = route.useSearch()
  const navigate = route.useNavigate()
  const open = ['ready', 'running', 'waiting', 'incident'] as const
  const columns: readonly ConsoleColumn<ConsoleWorkflow>[] = [
    {
      key: 'name',
      name: t('runs.workflow'),
      width: 12,
      cell: ({ name }) => (
        <Link className="text-link" to="/console/workflows/$name" params={{ name }}>
          {isolated(name)}
        </Link>
      ),
    },
    { key: 'label', name: t('workflows.label'), width: 16, cell: ({ label }) => isolated(label) },
    ...open.map(
      (state): ConsoleColumn<ConsoleWorkflow> => ({
        key: state,
        name: t(stateLooks[state].text),
        width: 6,
        alignEnd: true,
        cell: ({ name, open: counts }) => {
          const count = counts?.[state] ?? 0
          if (count === 0) return number(0)
          const label = `${name}: ${t(stateLooks[state].text)} ${number(count)}`
          return (
            <Link className="text-link" to="/console/runs" search={{ name, state }} aria-label={label}>
              {number(count)}
            </Link>
          )
        },
      }),
    ),
  ]
  return (
    <ConsolePage title={t('page.workflows')} intro={t('workflows.intro')}>
      <ConsoleList<ConsoleWorkflow>
        label={t('page.workflows')}
        path={consolePath(consoleRoutes.listConfiguredWorkflows)}
        filter={{ q }}
        columns={columns}
        empty={t('workflows.none')}
        everyMillis={30_000}
      >
        <FilterForm
          fields={[{ name: 'q', label: t('workflows.search') }]}
          values={{ q }}
          onApply={(next) => void navigate({ search: filled(next), replace: true })}
        />
      </ConsoleList>
    </ConsolePage>
  )
}
