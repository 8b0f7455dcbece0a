import { Badge, Button, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { AccountSession } from '#features/account/contract/account.ts'
import { endOtherSessions, endSession, sessionsQuery } from '../../api/account.ts'
import { useConfig } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { browserName } from '../../components/browser-name.ts'
import { Icon } from '../../components/icon.tsx'
import { useLiveSessions } from '../../components/live.ts'
import { useSay } from '../../components/notices.tsx'
import { useFailureText } from '../../components/states.tsx'

/** The user's sessions, which can be ended here. */
export function Sessions() {
  const { t, tn } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const failureText = useFailureText()
  const refetchInterval = useLiveSessions(sessionsQuery.queryKey)
  const sessions = useQuery({ ...sessionsQuery, refetchInterval })
  const others = useMutation({
    mutationFn: endOtherSessions,
    onSuccess: ({ ended }) => say(tn('security.ended', ended)),
    onError: (error) => say(failureText(error), 'bad'),
    onSettled: () => client.invalidateQueries({ queryKey: sessionsQuery.queryKey }),
  })
  const hasOthers = sessions.data?.sessions.some(({ current }) => !current) ?? false
  return (
    <Stack component="section" aria-label={t('security.sessions')} gap="sm">
      <Group justify="space-between">
        <Title order={2} size="h4">
          {t('security.sessions')}
        </Title>
        {hasOthers && (
          <Button
            variant="default"
            leftSection={<Icon name="exit" size={18} />}
            loading={others.isPending}
            onClick={() => others.mutate()}
          >
            {t('security.endOthers')}
          </Button>
        )}
      </Group>
      <Answer query={sessions} rows={2}>
        {(known) =>
          known.sessions
            .toSorted((a, b) => Number(b.current) - Number(a.current) || b.lastUsed.localeCompare(a.lastUsed))
            .map((session) => <SessionCard key={session.id} session={session} />)
        }
      </Answer>
    </Stack>
  )
}

function SessionCard({ session }: { readonly session: AccountSession }) {
  const { t, dateTime, relative } = useTranslation()
  const { logoutURL } = useConfig()
  const client = useQueryClient()
  const say = useSay()
  const failureText = useFailureText()
  const { id, current, agent, address, application, started, lastUsed, expires } = session
  const name = browserName(agent)
  const end = useMutation({
    mutationFn: () => endSession(id),
    onSuccess: () => say(t('security.sessionEnded')),
    onError: (error) => say(failureText(error), 'bad'),
    onSettled: () => client.invalidateQueries({ queryKey: sessionsQuery.queryKey }),
  })
  return (
    <Paper withBorder p="md">
      <Group justify="space-between" align="start" gap="sm">
        <div>
          <Group gap="xs">
            <Text fw={600}>{name === '' ? t('security.unknownBrowser') : name}</Text>
            {current && <Badge variant="light">{t('security.thisOne')}</Badge>}
          </Group>
          <Text size="sm" c="dimmed">
            {t('security.sessionWhere', { address, application })}
          </Text>
          <Text size="sm" c="dimmed">
            {t('security.sessionTimes', {
              started: dateTime(started),
              used: relative(lastUsed),
              ends: dateTime(expires),
            })}
          </Text>
        </div>
        {current ? (
          <Button component="a" href={logoutURL} variant="default" size="xs">
            {t('shell.signOut')}
          </Button>
        ) : (
          <Button
            variant="default"
            size="xs"
            loading={end.isPending}
            aria-label={t('security.endWhich', { name, time: dateTime(started) })}
            onClick={() => end.mutate()}
          >
            {t('security.end')}
          </Button>
        )}
      </Group>
    </Paper>
  )
}
