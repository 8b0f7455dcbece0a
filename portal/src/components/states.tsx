import { Alert, Button, Center, Group, Paper, Skeleton, Stack, Text, ThemeIcon, Title } from '@mantine/core'
import { type ReactNode, useCallback, useEffect, useState } from 'react'
import { ApiError, NoConnection } from '../api/call.ts'
import { useTranslation } from '../app/i18n.tsx'
import { MissingPart } from '../app/part.ts'
import { Icon, type IconName } from './icon.tsx'
import { useOnline } from './online.ts'

/** Faster results are shown without a flicker. */
const patienceMillis = 300

/** What the placeholder resembles: a list, a grid of cards, names with values, or a table. */
export type LoadingShape = 'rows' | 'cards' | 'facts' | 'table'

interface LoadingProps {
  readonly rows?: number
  readonly height?: number
  readonly shape?: LoadingShape
}

/** A placeholder for loading content, in the shape of that content. Without a connection it says what it waits for. */
export function Loading({ rows = 4, height = 64, shape = 'rows' }: LoadingProps) {
  const { t } = useTranslation()
  const isOnline = useOnline()
  const [isLate, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), patienceMillis)
    return () => clearTimeout(timer)
  }, [])
  if (!isOnline) return <Offline />
  if (!isLate) return null
  return (
    <div role="status" aria-label={t('state.loading')}>
      {placeholders[shape](rows, height)}
    </div>
  )
}

function Offline() {
  const { t } = useTranslation()
  return (
    <Paper withBorder p="md" role="status">
      <Group gap="sm" wrap="nowrap" align="start">
        <Icon name="offline" />
        <div>
          <Text fw={600}>{t('offline.waiting')}</Text>
          <Text size="sm" c="dimmed">
            {t('offline.waitingText')}
          </Text>
        </div>
      </Group>
    </Paper>
  )
}

const repeat = (count: number, one: (i: number) => ReactNode): ReactNode[] =>
  Array.from({ length: count }, (_, i) => one(i))

const placeholders: Readonly<Record<LoadingShape, (rows: number, height: number) => ReactNode>> = {
  rows: (rows, height) => (
    <Stack gap="sm">
      {repeat(rows, (row) => (
        <Skeleton key={row} height={height} radius="lg" />
      ))}
    </Stack>
  ),
  cards: (rows, height) => (
    <div className="skeleton-cards">
      {repeat(rows * 2, (card) => (
        <Skeleton key={card} height={height} radius="lg" />
      ))}
    </div>
  ),
  facts: (rows) => (
    <Paper withBorder p="md">
      <Stack gap="sm">
        {repeat(rows, (row) => (
          <Group key={row} wrap="nowrap">
            <Skeleton height={14} width="7rem" />
            <Skeleton height={14} width={row % 2 === 0 ? '45%' : '30%'} />
          </Group>
        ))}
      </Stack>
    </Paper>
  ),
  table: (rows) => (
    <Paper withBorder p="md">
      <Stack gap="sm">
        <Skeleton height={18} />
        {repeat(rows * 2, (row) => (
          <Skeleton key={row} height={12} />
        ))}
      </Stack>
    </Paper>
  ),
}

interface EmptyProps {
  readonly icon: IconName
  readonly title: string
  readonly text?: string
  readonly children?: ReactNode
}

/** An empty state, with what to do about it. A check mark is good news. */
export function Empty({ icon, title, text, children }: EmptyProps) {
  return (
    <Center py="xl">
      <Stack align="center" gap="xs" maw={440}>
        <ThemeIcon variant="light" size={56} radius="xl" color={icon === 'check' ? 'green' : 'primary'}>
          <Icon name={icon} size={28} />
        </ThemeIcon>
        <Title order={2} size="h4" ta="center">
          {title}
        </Title>
        {text !== undefined && (
          <Text c="dimmed" ta="center">
            {text}
          </Text>
        )}
        {children}
      </Stack>
    </Center>
  )
}

/** The text of an error for users. */
export function useFailureText(): (error: Error) => string {
  const { t } = useTranslation()
  return useCallback(
    (error) => {
      if (error instanceof NoConnection) return t('failure.connection')
      if (error instanceof MissingPart) return t('failure.part')
      if (!(error instanceof ApiError)) return t('failure.unknown')
      if (error.status === 404) return t('failure.notFound')
      if (error.status === 403 && error.texts.length === 0) return t('failure.notAllowed')
      if (error.texts.length === 0) return t('failure.unknown')
      return error.texts.join(' ')
    },
    [t],
  )
}

interface FailureProps {
  readonly error: Error
  readonly onRetry?: () => void
}

export function Failure({ error, onRetry }: FailureProps) {
  const { t } = useTranslation()
  const failureText = useFailureText()
  const requestId = error instanceof ApiError ? error.requestId : undefined
  return (
    <Alert color="red" variant="outline" icon={<Icon name="warning" />} title={t('failure.title')} role="alert">
      <Stack gap="xs" align="start">
        <Text size="sm">{failureText(error)}</Text>
        {requestId !== undefined && (
          <Text size="xs" c="dimmed">
            {t('failure.number', { number: requestId })}
          </Text>
        )}
        {error instanceof MissingPart ? (
          <Button size="xs" onClick={() => window.location.reload()}>
            {t('action.reload')}
          </Button>
        ) : (
          onRetry !== undefined && (
            <Button size="xs" variant="default" onClick={onRetry}>
              {t('action.retry')}
            </Button>
          )
        )}
      </Stack>
    </Alert>
  )
}
