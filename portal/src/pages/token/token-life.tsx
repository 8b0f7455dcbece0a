import { Alert, Button, Group, Paper, Progress, Text } from '@mantine/core'
import { useEffect } from 'react'
import type { TokenUser } from '#features/portal/contract/token.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Icon } from '../../components/icon.tsx'
import { useNow } from '../../components/now.ts'
import { Status } from '../../components/status.tsx'
import { issuedAt } from './claim-text.ts'
import { countdown } from './countdown.ts'

interface TokenLifeProps {
  readonly user: TokenUser
  readonly expires: string
  readonly logoutURL: string
  readonly isRenewing: boolean
  readonly onRenew: () => void
  /** Called when it expires. */
  readonly onEnd: () => void
}

/** The remaining lifetime of the token, second by second, and how to get another. */
export function TokenLife({ user, expires, logoutURL, isRenewing, onRenew, onEnd }: TokenLifeProps) {
  const { t, dateTime } = useTranslation()
  const now = useNow(1_000)
  const { text, percent, urgency, isOver } = countdown(now, Date.parse(expires), issuedAt(user.claims))
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each end
  useEffect(() => {
    if (isOver) onEnd()
  }, [isOver, expires])
  const { state } = user
  return (
    <Paper withBorder p="md" component="section" aria-label={t('token.life')}>
      <Group justify="space-between" gap="md">
        <div>
          <Status
            tone={urgency}
            icon={isOver ? 'warning' : 'clock'}
            text={isOver ? t('token.expired') : t('token.valid')}
          />
          <Text size="xl" fw={700} role="timer" aria-live="off" className="clock">
            {text}
          </Text>
          <Text size="sm" c="dimmed">
            {t(isOver ? 'token.endedAt' : 'token.endsAt', { time: dateTime(expires) })}
          </Text>
        </div>
        {state?.renewable === true && (
          <Button leftSection={<Icon name="refresh" size={18} />} loading={isRenewing} onClick={onRenew}>
            {t('token.renew')}
          </Button>
        )}
      </Group>
      <Progress value={percent} mt="sm" color={colors[urgency]} aria-label={t('token.life')} transitionDuration={0} />
      {isOver && (
        <Alert mt="sm" color="yellow" variant="outline" icon={<Icon name="warning" />} role="status">
          {state?.renewable === true ? (
            t('token.expiredRenew')
          ) : (
            <>
              {t('token.expiredLogin')} <a href={logoutURL}>{t('shell.signOut')}</a>
            </>
          )}
        </Alert>
      )}
      {state !== undefined && state.refreshToken !== 'none' && (
        <Text size="sm" mt="sm" c="dimmed">
          {t(refreshTexts[state.refreshToken])}
          {state.refreshExpires !== undefined &&
            state.refreshToken !== 'ended' &&
            ` ${t('token.refreshEnds', { time: dateTime(state.refreshExpires) })}`}
        </Text>
      )}
    </Paper>
  )
}

const colors = { good: 'green', waiting: 'yellow', bad: 'red' } as const

const refreshTexts = {
  unused: 'token.refreshUnused',
  used: 'token.refreshUsed',
  ended: 'token.refreshEnded',
} as const
