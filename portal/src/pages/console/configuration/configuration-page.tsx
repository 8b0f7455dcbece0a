import { Alert, Stack, Text } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type {
  ConfigurationObjectView,
  ConfigurationProblemView,
  ConfigurationView,
} from '#features/portal/contract/console-configuration.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { call } from '../../../api/call.ts'
import { admin, consolePath } from '../../../api/console.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import type { MessageKey } from '../../../app/messages.ts'
import { Facts } from '../../../components/facts.tsx'
import type { IconName } from '../../../components/icon.tsx'
import { Icon } from '../../../components/icon.tsx'
import { useLive } from '../../../components/live.ts'
import { Failure, Loading } from '../../../components/states.tsx'
import { Status, type Tone } from '../../../components/status.tsx'
import { ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { FilterForm, filled } from '../filter-form.tsx'
import { Section } from '../section.tsx'
import { Explain } from './explain.tsx'
import { SetAside } from './set-aside.tsx'
import './configuration.css'

const route = getRouteApi('/console/configuration')
const pollMillis = 15_000

const configurationQuery = queryOptions({
  queryKey: ['admin', 'configuration'],
  queryFn: ({ signal }) => call<ConfigurationView>(admin(consoleRoutes.getConfiguration), { signal }),
})

type StatusName = ConfigurationObjectView['status']
const statuses: Readonly<Record<StatusName, { text: MessageKey; tone: Tone; icon: IconName }>> = {
  loaded: { text: 'configuration.loaded', tone: 'good', icon: 'check' },
  warnings: { text: 'configuration.warnings', tone: 'waiting', icon: 'warning' },
  'set aside': { text: 'configuration.setAside', tone: 'bad', icon: 'close' },
  errors: { text: 'configuration.errors', tone: 'bad', icon: 'warning' },
  'not loaded': { text: 'configuration.notLoaded', tone: 'bad', icon: 'close' },
}

/** What is configured, what is wrong with it, and why a request would be allowed or denied. */
export function ConfigurationPage() {
  const { t } = useTranslation()
  const { data, error, refetch } = useQuery({ ...configurationQuery, refetchInterval: useLive(pollMillis) })
  return (
    <ConsolePage title={t('configuration.title')}>
      {data !== undefined ? (
        <State configuration={data} />
      ) : error === null ? (
        <Loading rows={2} height={100} />
      ) : (
        <Failure error={error} onRetry={() => void refetch()} />
      )}
      <Objects />
      <Explain />
    </ConsolePage>
  )
}

const outcomes: Readonly<Record<Exclude<ConfigurationView['latest']['outcome'], 'applied'>, MessageKey>> = {
  refused: 'configuration.refused',
  failed: 'configuration.failed',
  unread: 'configuration.unread',
}

function State({ configuration }: { readonly configuration: ConfigurationView }) {
  const { t, tn, dateTime, relative } = useTranslation()
  const { running, latest, problems, problemCount } = configuration
  return (
    <Stack gap="md">
      {latest.outcome !== 'applied' && (
        <Alert color="red" variant="outline" icon={<Icon name="warning" />} title={t(outcomes[latest.outcome])}>
          {t('configuration.stays', { latest: dateTime(latest.time), since: dateTime(running.since) })}
        </Alert>
      )}
      <SetAside configuration={configuration} />
      <Section title={t('configuration.running')}>
        <Facts
          facts={[
            { name: t('configuration.since'), value: `${dateTime(running.since)} (${relative(running.since)})` },
            { name: t('configuration.hash'), value: running.hash },
          ]}
        />
      </Section>
      <Section title={t('configuration.problems')}>
        {problems.length === 0 ? (
          <Text c="dimmed">{t('configuration.noProblems')}</Text>
        ) : (
          <ul className="problem-list">
            {problems.map((problem) => (
              <li key={JSON.stringify(problem)}>
                <Problem problem={problem} />
              </li>
            ))}
          </ul>
        )}
        {problemCount > problems.length && <Text>{tn('configuration.more', problemCount - problems.length)}</Text>}
      </Section>
    </Stack>
  )
}

function Problem({ problem }: { readonly problem: ConfigurationProblemView }) {
  const { t } = useTranslation()
  const { level, file, line, column, path, message } = problem
  const place = line === undefined ? file : `${file}:${line}:${column ?? 1}`
  const isError = level === 'error'
  return (
    <Stack gap={2}>
      <Status
        tone={isError ? 'bad' : 'waiting'}
        icon="warning"
        text={`${t(isError ? 'configuration.error' : 'configuration.warning')}: ${isolated(place)}`}
      />
      <Text size="sm">{isolated(path === '' ? message : `${path}: ${message}`)}</Text>
    </Stack>
  )
}

function Objects() {
  const { t } = useTranslation()
  const filter = route.useSearch()
  const navigate = route.useNavigate()
  return (
    <Section title={t('configuration.objects')}>
      <ConsoleList<ConfigurationObjectView>
        label={t('configuration.objects')}
        path={consolePath(consoleRoutes.listConfigurationObjects)}
        name="objects"
        filter={filter}
        empty={t('configuration.none')}
        columns={[
          { key: 'kind', name: t('configuration.kind'), width: 9, cell: ({ kind }) => isolated(kind) },
          { key: 'name', name: t('configuration.name'), width: 11, cell: ({ name }) => isolated(name ?? '') },
          {
            key: 'place',
            name: t('configuration.place'),
            width: 14,
            cell: ({ file, line }) => isolated(line === undefined ? file : `${file}:${line}`),
          },
          {
            key: 'status',
            name: t('dashboard.status'),
            width: 10,
            cell: ({ status, setAside }) => {
              const { text, ...shown } = statuses[status]
              return (
                <Stack gap={2}>
                  <Status {...shown} text={t(text)} />
                  {setAside !== undefined && (
                    <Text size="sm" className="set-aside-reason">
                      {isolated(setAside)}
                    </Text>
                  )}
                </Stack>
              )
            },
          },
        ]}
      >
        <FilterForm
          fields={[
            { name: 'kind', label: t('configuration.kind') },
            { name: 'name', label: t('configuration.nameStart') },
            {
              name: 'status',
              label: t('dashboard.status'),
              options: [
                { value: '', label: t('console.any') },
                ...Object.entries(statuses).map(([value, { text }]) => ({ value, label: t(text) })),
              ],
            },
          ]}
          values={filter}
          onApply={(next) => void navigate({ search: filled(next) })}
        />
      </ConsoleList>
    </Section>
  )
}
