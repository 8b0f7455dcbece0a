import { Button, Group, Paper, Text, Title } from '@mantine/core'
import { lazy, Suspense } from 'react'
import { saveFile } from '../../api/download.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { part } from '../../app/part.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Icon } from '../../components/icon.tsx'
import type { TokenPart } from './token-parts.ts'

const LazyQrCode = lazy(part(async () => ({ default: (await import('./lazy-qr-code.tsx')).LazyQrCode })))

interface TokenValueProps {
  readonly part: TokenPart
  readonly withQr: boolean
}

export function TokenValue({ part: { name: given, label, value, kind, fileName }, withQr }: TokenValueProps) {
  const { t } = useTranslation()
  const name = label === undefined ? given : t(label)
  return (
    <Paper withBorder p="md" component="section" aria-label={name}>
      <Group justify="space-between" mb="xs" gap="xs">
        <Title order={2} size="h5">
          {name}
        </Title>
        {kind !== 'text' && (
          <Group gap="xs">
            {fileName !== undefined && (
              <Button
                size="xs"
                variant="default"
                leftSection={<Icon name="download" size={16} />}
                aria-label={t('token.downloadWhat', { what: name })}
                onClick={() => saveFile(new Blob([value], { type: 'text/plain' }), fileName)}
              >
                {t('token.download')}
              </Button>
            )}
            <CopyButton value={value} label={name} />
          </Group>
        )}
      </Group>
      {kind === 'text' ? (
        <Text className="preline">{value}</Text>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys have to reach it
        <pre className="value" tabIndex={0}>
          {value}
        </pre>
      )}
      {withQr && (
        <Suspense>
          <Group justify="center" mt="md">
            <LazyQrCode text={value} />
          </Group>
        </Suspense>
      )}
    </Paper>
  )
}
