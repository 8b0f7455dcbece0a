import { SegmentedControl, Stack } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { consolePart } from '../../app/catalogs.ts'
import { useConfig } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { Page } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'
import { Incidents } from './incidents.tsx'
import { Journal } from './journal.tsx'
import { isPeriod, type Period, periods } from './periods.ts'
import { Pictures } from './pictures.tsx'
import './dashboard.css'

const route = getRouteApi('/dashboard')

const Drift = lazy(consolePart(async () => ({ default: (await import('./drift.tsx')).Drift })))

/** The state of the installation, for administrators. */
export function DashboardPage() {
  const { t } = useTranslation()
  const { administrator } = useConfig()
  const { period: written } = route.useSearch()
  const navigate = route.useNavigate()
  const period: Period = isPeriod(written) ? written : '24h'
  if (!administrator) {
    return (
      <Page title={t('page.dashboard')}>
        <Empty icon="shield" title={t('dashboard.notYours')} text={t('failure.notAllowed')} />
      </Page>
    )
  }
  const chooser = (
    <SegmentedControl
      aria-label={t('dashboard.period')}
      value={period}
      onChange={(next) => void navigate({ search: { period: next }, replace: true })}
      data={Object.entries(periods).map(([value, { label }]) => ({ value, label: t(label) }))}
    />
  )
  return (
    <Page title={t('page.dashboard')} actions={chooser}>
      <Stack gap="xl">
        <Incidents />
        <Suspense>
          <Drift />
        </Suspense>
        <Pictures period={period} />
        <Journal period={period} />
      </Stack>
    </Page>
  )
}
