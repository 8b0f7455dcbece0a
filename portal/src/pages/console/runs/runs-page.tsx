import { getRouteApi, Link } from '@tanstack/react-router'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type { AdminRun } from '#features/portal/contract/main-admin.ts'
import { consolePath } from '../../../api/console.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { PersonName } from '../../../components/person-names.tsx'
import { stateLooks } from '../../../components/request-states.ts'
import { Requester } from '../../../components/requester.tsx'
import { stateOptions, statesOf } from '../../../components/run-filter.ts'
import { Status } from '../../../components/status.tsx'
import { type ConsoleColumn, ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { FilterForm, filled, shownTime } from '../filter-form.tsx'

const route = getRouteApi('/console/runs')

/** All stored runs. */
export function RunsPage() {
  const { t } = useTranslation()
  const { state = '', name, subject, requestor, target, unfinished, from, until } = route.useSearch()
  const navigate = route.useNavigate()
  const columns = useRunColumns()
  const values = {
    state: statesOf(state).join(','),
    name,
    subject,
    requestor,
    target,
    unfinished: unfinished === 'true' ? unfinished : undefined,
    from: shownTime(from),
    until: shownTime(until),
  }
  return (
    <ConsolePage title={t('page.runs')} intro={t('runs.intro')}>
      <ConsoleList<AdminRun>
        label={t('page.runs')}
        path={consolePath(consoleRoutes.listRuns)}
        filter={{ ...filled(values), state: statesOf(state) }}
        columns={columns}
        empty={t('runs.none')}
        everyMillis={15_000}
      >
        <FilterForm
          fields={[
            { name: 'state', label: t('requests.state'), options: stateOptions(state, t) },
            { name: 'name', label: t('runs.workflow') },
            { name: 'subject', label: t('request.for') },
            { name: 'requestor', label: t('request.by') },
            { name: 'target', label: t('runs.target') },
            {
              name: 'unfinished',
              label: t('runs.change'),
              options: [
                { value: '', label: t('requests.all') },
                { value: 'true', label: t('runs.unfinished') },
              ],
            },
            { name: 'from', label: t('runs.from'), kind: 'time' },
            { name: 'until', label: t('runs.until'), kind: 'time' },
          ]}
          values={values}
          onApply={(next) => void navigate({ search: filled(next), replace: true })}
        />
      </ConsoleList>
    </ConsolePage>
  )
}

/** The columns of a list of runs. */
export function useRunColumns(): readonly ConsoleColumn<AdminRun>[] {
  const { t, dateTime, relative } = useTranslation()
  return [
    {
      key: 'name',
      name: t('runs.workflow'),
      width: 12,
      cell: ({ id, name }) => (
        <Link className="text-link" to="/console/runs/$id" params={{ id }}>
          {isolated(name)}
        </Link>
      ),
    },
    {
      key: 'state',
      name: t('requests.state'),
      width: 9,
      cell: ({ state }) => {
        const { tone, icon, text } = stateLooks[state]
        return <Status tone={tone} icon={icon} text={t(text)} />
      },
    },
    { key: 'subject', name: t('request.for'), width: 9, cell: ({ subject }) => <PersonName login={subject} /> },
    {
      key: 'requestor',
      name: t('request.by'),
      width: 11,
      cell: (run) => <Requester {...run} />,
    },
    {
      key: 'created',
      name: t('request.created'),
      width: 9,
      cell: ({ created }) => (
        <time dateTime={created} title={dateTime(created)}>
          {relative(created)}
        </time>
      ),
    },
    {
      key: 'error',
      name: t('dashboard.error'),
      width: 14,
      cell: ({ incident }) => (incident === undefined ? '' : isolated(incident.message)),
    },
  ]
}
