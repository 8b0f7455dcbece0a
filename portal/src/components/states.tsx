import { Alert, Button, Center, Skeleton, Stack, Text, ThemeIcon, Title } from '@mantine/core'
import { type ReactNode, useCallback, useEffect, useState } from 'react'
import { ApiError, NoConnection } from '../api/call.ts'
import { useTranslation } from '../app/i18n.tsx'
import { MissingPart } from '../app/part.ts'
import { Icon, type IconName } from './icon.tsx'

/** Faster results are shown without a flicker. */
const patienceMillis = 300

interface LoadingProps {
  readonly rows?: number
  readonly height?: number
}

/** A placeholder for loading content. */
export function Loading({ rows = 4, height = 64 }: LoadingProps) {
  const { t } = useTranslation()
  const [isLate, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), patienceMillis)
    return () => clearTimeout(timer)
  }, [])
  if (!isLate) return null
  return (
    <Stack gap="sm" role="status" aria-label={t('state.loading')}>
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
        <Skeleton key={row} height={height} radius="md" />
      ))}
    </Stack>
  )
}

interface EmptyProps {
  readonly icon: IconName
  readonly title: string
  readonly text?: string
  readonly children?: ReactNode
}

/** An empty state, with what to do about it. */
export function Empty({ icon, title, text, children }: EmptyProps) {
  return (
    <Center py="xl">
      <Stack align="center" gap="xs" maw={440}>
        <ThemeIcon variant="light" size={56} radius="xl">
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
