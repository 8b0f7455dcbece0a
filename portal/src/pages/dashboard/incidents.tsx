import { Button, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { AdminAction, AdminRun } from '#contract/main-admin.ts'
import { incidentsQuery } from '../../api/admin.ts'
import { useTranslation } from '../../app/i18n.tsx'
import type { MessageKey } from '../../app/messages.ts'
import { Icon, type IconName } from '../../components/icon.tsx'
import { useLive } from '../../components/live.ts'
import { requesterText } from '../../components/requester.ts'
import { Empty, Failure, Loading } from '../../components/states.tsx'
import { Status } from '../../components/status.tsx'
import { InterventionDialog } from './intervention-dialog.tsx'

const actions: readonly { readonly action: AdminAction; readonly label: MessageKey; readonly icon: IconName }[] = [
  { action: 'retry', label: 'dashboard.retry', icon: 'refresh' },
  { action: 'skip', label: 'dashboard.skip', icon: 'skip' },
  { action: 'cancel', label: 'dashboard.cancel', icon: 'close' },
]

interface Asked {
  readonly run: AdminRun
  readonly action: AdminAction
}

/** Requests that need an administrator to continue. */
export function Incidents() {
  const { t, number } = useTranslation()
  const incidents = useInfiniteQuery({ ...incidentsQuery, refetchInterval: useLive(30_000) })
  const [asked, setAsked] = useState<Asked>()
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
        runs.map((run) => <Incident key={run.id} run={run} onAsk={(action) => setAsked({ run, action })} />)
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
      {asked !== undefined && <InterventionDialog {...asked} onClose={() => setAsked(undefined)} />}
    </Stack>
  )
}

function Incident({ run, onAsk }: { readonly run: AdminRun; readonly onAsk: (action: AdminAction) => void }) {
  const { t, moment, relative } = useTranslation()
  const { name, subject, requestor, caller, incident, updated, created } = run
  return (
    <Paper withBorder p="md" component="article" aria-label={t('dashboard.incidentOf', { name, subject })}>
      <Group justify="space-between" align="start" gap="sm">
        <div className="incident-text">
          <Group gap="xs">
            <Text fw={600}>{name}</Text>
            <Status tone="bad" icon="warning" text={relative(updated)} />
          </Group>
          <Text size="sm">{t('dashboard.forBy', { subject, requestor: requesterText(requestor, t, caller) })}</Text>
          <Text size="sm" c="dimmed">
            {t('dashboard.since', { created: moment(created) })}
          </Text>
          {incident !== undefined && (
            <Text size="sm" mt={4}>
              <code>{incident.task}</code> · {incident.message}
            </Text>
          )}
        </div>
        <Group gap="xs">
          {actions.map(({ action, label, icon }) => (
            <Button
              key={action}
              size="xs"
              variant={action === 'retry' ? 'filled' : 'default'}
              leftSection={<Icon name={icon} size={16} />}
              aria-label={`${t(label)}: ${t('dashboard.incidentOf', { name, subject })}`}
              onClick={() => onAsk(action)}
            >
              {t(label)}
            </Button>
          ))}
        </Group>
      </Group>
    </Paper>
  )
}
