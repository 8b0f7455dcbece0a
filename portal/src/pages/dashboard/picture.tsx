import { Paper, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'
import { useTranslation } from '../../app/i18n.tsx'

interface PictureProps {
  readonly title: string
  /** The totals as text. */
  readonly text?: ReactNode
  readonly hint?: string
  readonly isEmpty: boolean
  readonly children: ReactNode
}

/** A frame around a chart, which is loaded only if there is data. */
export function Picture({ title, text, hint, isEmpty, children }: PictureProps) {
  const { t } = useTranslation()
  return (
    <Paper withBorder p="md" component="section" aria-label={title}>
      <Title order={3} size="h5">
        {title}
      </Title>
      {!isEmpty && text !== undefined && (
        <Text size="sm" c="dimmed">
          {text}
        </Text>
      )}
      {hint !== undefined && (
        <Text size="sm" c="dimmed">
          {hint}
        </Text>
      )}
      {isEmpty ? (
        <Text c="dimmed" mt="sm">
          {t('dashboard.nothing')}
        </Text>
      ) : (
        <div className="picture">{children}</div>
      )}
    </Paper>
  )
}
