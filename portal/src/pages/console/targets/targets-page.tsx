import { Text } from '@mantine/core'
import { getRouteApi, Link } from '@tanstack/react-router'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type { ConsoleTarget } from '#features/portal/contract/console-targets.ts'
import { consolePath } from '../../../api/console.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import type { MessageKey } from '../../../app/messages.ts'
import type { IconName } from '../../../components/icon.tsx'
import { Status, type Tone } from '../../../components/status.tsx'
import { type ConsoleColumn, ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { FilterForm, filled } from '../filter-form.tsx'

const route = getRouteApi('/console/targets')

const looks: Readonly<
  Record<ConsoleTarget['health'], { readonly tone: Tone; readonly icon: IconName; readonly text: MessageKey }>
> = {
  up: { tone: 'good', icon: 'check', text: 'targets.up' },
  down: { tone: 'bad', icon: 'warning', text: 'targets.down' },
  unchecked: { tone: 'plain', icon: 'dot', text: 'targets.unchecked' },
}

/** The targets of the configuration, each checked when the page is read. */
export function TargetsPage() {
  const { t } = useTranslation()
  const { q } = route.useSearch()
  const navigate = route.useNavigate()
  const columns = useTargetColumns()
  return (
    <ConsolePage title={t('page.targets')} intro={t('targets.intro')}>
      <ConsoleList<ConsoleTarget>
        label={t('page.targets')}
        path={consolePath(consoleRoutes.listTargets)}
        filter={{ q }}
        columns={columns}
        empty={t('targets.none')}
        everyMillis={30_000}
      >
        <FilterForm
          fields={[{ name: 'q', label: t('targets.search') }]}
          values={{ q }}
          onApply={(next) => void navigate({ search: filled(next), replace: true })}
        />
      </ConsoleList>
    </ConsolePage>
  )
}

function useTargetColumns(): readonly ConsoleColumn<ConsoleTarget>[] {
  const { t, tn, number, dateTime, relative } = useTranslation()
  return [
    { key: 'name', name: t('targets.name'), width: 9, cell: ({ name }) => isolated(name) },
    { key: 'class', name: t('targets.class'), width: 12, cell: ({ className }) => isolated(className) },
    {
      key: 'health',
      name: t('targets.health'),
      width: 13,
      cell: ({ health, problem }) => {
        const { tone, icon, text } = looks[health]
        return (
          <>
            <Status tone={tone} icon={icon} text={t(text)} />
            {problem !== undefined && <Text size="sm">{isolated(problem)}</Text>}
          </>
        )
      },
    },
    {
      key: 'failures',
      name: t('targets.failures'),
      width: 16,
      cell: ({ failures, since, lastFailure }) => (
        <>
          <Text size="sm" title={dateTime(since)}>
            {t('targets.failuresSince', { count: number(failures), since: relative(since) })}
          </Text>
          {lastFailure !== undefined && (
            <Text size="sm">
              <time dateTime={lastFailure.time} title={dateTime(lastFailure.time)}>
                {relative(lastFailure.time)}
              </time>
              {`: ${isolated(lastFailure.message)}`}
            </Text>
          )}
        </>
      ),
    },
    {
      key: 'incidents',
      name: t('dashboard.incidents'),
      width: 7,
      cell: ({ name, incidents }) =>
        incidents === 0 ? (
          number(0)
        ) : (
          <Link className="text-link" to="/console/runs" search={{ target: name, state: 'incident' }}>
            {tn('targets.incidents', incidents)}
          </Link>
        ),
    },
  ]
}
