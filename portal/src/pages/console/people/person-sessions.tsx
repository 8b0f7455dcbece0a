import { Button, Group, Paper, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { PersonSession } from '#features/portal/contract/console-people.ts'
import { endPersonSessions, personSessionsQuery } from '../../../api/people.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Answer } from '../../../components/answer.tsx'
import { browserName } from '../../../components/browser-name.ts'
import { Icon } from '../../../components/icon.tsx'
import { useLiveSessions } from '../../../components/live.ts'
import { ReasonDialog } from '../../../components/reason-dialog.tsx'
import { nameOf, type PersonPart } from './person-part.ts'

/** The API lists no more. */
const maxListed = 100

/** The sessions of a user in all applications. */
export function PersonSessions({ person, mayChange }: PersonPart) {
  const { t, tn, number } = useTranslation()
  const query = personSessionsQuery(person.id)
  const refetchInterval = useLiveSessions(query.queryKey, person.id)
  const sessions = useQuery({ ...query, refetchInterval })
  const [ending, setEnding] = useState<PersonSession | 'all'>()
  const name = nameOf(person)
  const title = t(ending === 'all' ? 'users.endAll' : 'users.endOne')
  return (
    <Answer query={sessions} rows={2}>
      {({ sessions: known }) => (
        <Stack gap="sm">
          {known.length === 0 && <Text c="dimmed">{t('users.noSessions')}</Text>}
          {mayChange && known.length > 0 && (
            <Group>
              <Button variant="default" leftSection={<Icon name="exit" size={18} />} onClick={() => setEnding('all')}>
                {t('users.endAll')}
              </Button>
            </Group>
          )}
          {known.map((session) => (
            <SessionCard
              key={session.id}
              session={session}
              {...(mayChange ? { onEnd: () => setEnding(session) } : {})}
            />
          ))}
          {known.length >= maxListed && (
            <Text size="sm" c="dimmed">
              {t('users.latestSessions', { count: number(known.length) })}
            </Text>
          )}
          {ending !== undefined && (
            <ReasonDialog
              title={title}
              text={t(ending === 'all' ? 'users.endAllText' : 'users.endOneText', { name })}
              isHarmful
              send={(reason) => endPersonSessions(person.id, reason, ending === 'all' ? undefined : ending.id)}
              done={({ ended }) => (ended === 0 ? t('users.nothingEnded') : tn('security.ended', ended))}
              onClose={() => setEnding(undefined)}
            />
          )}
        </Stack>
      )}
    </Answer>
  )
}

interface SessionCardProps {
  readonly session: PersonSession
  /** Absent if the session can't be ended here. */
  readonly onEnd?: () => void
}

function SessionCard({ session, onEnd }: SessionCardProps) {
  const { t, dateTime, relative } = useTranslation()
  const { agent, address, application, started, lastUsed, expires } = session
  const browser = browserName(agent) || t('security.unknownBrowser')
  return (
    <Paper withBorder p="md">
      <Group justify="space-between" align="start" gap="sm">
        <div>
          <Text fw={600}>{isolated(browser)}</Text>
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
        {onEnd !== undefined && (
          <Button
            variant="default"
            size="xs"
            aria-label={t('users.endWhich', { browser, time: dateTime(started) })}
            onClick={onEnd}
          >
            {t('users.endOne')}
          </Button>
        )}
      </Group>
    </Paper>
  )
}
