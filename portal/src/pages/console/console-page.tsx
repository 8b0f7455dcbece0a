import type { ReactNode } from 'react'
import { useConfig } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { Page } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'

interface ConsolePageProps {
  readonly title: string
  readonly intro?: string
  readonly actions?: ReactNode
  readonly children: ReactNode
}

/** A page of the console; others than administrators see only that it isn't for them. */
export function ConsolePage({ children, actions, ...page }: ConsolePageProps) {
  const { t } = useTranslation()
  const { administrator } = useConfig()
  if (!administrator) {
    return (
      <Page {...page}>
        <Empty icon="shield" title={t('dashboard.notYours')} text={t('failure.notAllowed')} />
      </Page>
    )
  }
  return (
    <Page {...page} actions={actions}>
      {children}
    </Page>
  )
}
