import { Button } from '@mantine/core'
import type { ErrorComponentProps } from '@tanstack/react-router'
import { Link } from '@tanstack/react-router'
import { Page } from '../components/page.tsx'
import { Empty, Failure, Loading } from '../components/states.tsx'
import { useTranslation } from './i18n.tsx'

export function PagePending() {
  return <Loading rows={5} />
}

/** Only the page is tried again; text typed elsewhere stays. */
export function PageFailure({ error, reset }: ErrorComponentProps) {
  return <Failure error={error instanceof Error ? error : new Error(String(error))} onRetry={reset} />
}

export function NotFound() {
  const { t } = useTranslation()
  return (
    <Page title={t('notFound.title')}>
      <Empty icon="search" title={t('notFound.title')} text={t('notFound.text')}>
        <Button renderRoot={(props) => <Link to="/" {...props} />}>{t('notFound.home')}</Button>
      </Empty>
    </Page>
  )
}
