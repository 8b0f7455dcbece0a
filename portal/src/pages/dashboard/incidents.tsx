import { Button, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { incidentsQuery } from '../../api/admin.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { useLive } from '../../components/live.ts'
import { Names, useNames } from '../../components/person-names.tsx'
import { requesterText } from '../../components/requester.tsx'
import { RunActions, useIntervention } from '../../components/run-actions.tsx'
import { Empty, Failure, Loading } from '../../components/states.tsx'
import { Status } from '../../components/status.tsx'

/** Requests that need an administrator to continue. */
export function Incidents() {
  const { t, number } = useTranslation()
  const incidents = useInfiniteQuery({ ...incidentsQuery, refetchInterval: useLive(30_000) })
  const { ask, dialog } = useIntervention()
  const runs = incidents.data?.pages.flatMap((page) => page.runs)
  return (
    <Stack component="section" aria-label={t('dashboard.incidents')} gap="sm">
      <Title order={2} size="h4">
        {t('dashboard.incidents')}
        {runs !== undefined && runs.length > 0 && ` (${number(runs.length)}${incidents.hasNextPage ? '+' : ''})`}
      </Title>
      {runs === undefined ? (
        incidents.error === null ? (
          <Loading rows={2} />
        ) : (
          <Failure error={incidents.error} onRetry={() => void incidents.refetch()} />
        )
      ) : runs.length === 0 ? (
        <Empty icon="check" title={t('dashboard.noIncidents')} text={t('dashboard.noIncidentsText')} />
      ) : (
        <Names of={incidents.data?.pages} withLogin>
          {runs.map((run) => (
            <Incident key={run.id} run={run} onAsk={ask} />
          ))}
        </Names>
      )}
      {incidents.isFetchNextPageError ? (
        <Failure error={incidents.error} onRetry={() => void incidents.fetchNextPage()} />
      ) : (
        incidents.hasNextPage && (
          <Button
            variant="default"
            loading={incidents.isFetchingNextPage}
            onClick={() => void incidents.fetchNextPage()}
          >
            {t('action.more')}
          </Button>
        )
      )}
      {dialog}
    </Stack>
  )
}

type IncidentProps = Parameters<typeof RunActions>[0]

function Incident({ run, onAsk }: IncidentProps) {
  const { t, dateTime, relative } = useTranslation()
  const nameOf = useNames()
  const subject = nameOf(run.subject)
  const { id, name, incident, updated, created } = run
  return (
    <Paper withBorder p="md" component="article" aria-label={t('dashboard.incidentOf', { name, subject })}>
      <Group justify="space-between" align="start" gap="sm">
        <div className="incident-text">
          <Group gap="xs">
            <Link to="/console/runs/$id" params={{ id }} className="text-link incident-link">
              {isolated(name)}
            </Link>
            <Status tone="bad" icon="warning" text={relative(updated)} />
          </Group>
          <Text size="sm">{t('dashboard.forBy', { subject, requestor: requesterText(run, t, nameOf) })}</Text>
          <Text size="sm" c="dimmed">
            {t('dashboard.since', { created: dateTime(created) })}
          </Text>
          {incident !== undefined && (
            <Text size="sm" mt={4}>
              <code>{incident.task}</code> · {incident.message}
            </Text>
          )}
        </div>
        <RunActions run={run} onAsk={onAsk} />
      </Group>
    </Paper>
  )
}
