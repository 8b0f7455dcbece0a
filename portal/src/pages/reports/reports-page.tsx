import { Text } from '@mantine/core'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { ReportInfo } from '#features/reports/contract/reports.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { Icon } from '../../components/icon.tsx'
import { Page } from '../../components/page.tsx'
import { SearchBox } from '../../components/search-box.tsx'
import { Empty, Failure, Loading } from '../../components/states.tsx'
import { VirtualGrid } from '../../components/virtual-grid.tsx'
import { type OrgReports, useKnownReports } from './known-reports.ts'

const route = getRouteApi('/reports')

export function ReportsPage() {
  const { t } = useTranslation()
  const { q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const { groups, error, refetch } = useKnownReports()
  const search = (next: string): void => void navigate({ search: next === '' ? {} : { q: next }, replace: true })
  return (
    <Page title={t('page.reports')} intro={t('reports.intro')}>
      <SearchBox label={t('reports.search')} value={q} onChange={search} />
      {groups === undefined ? (
        error === null ? (
          <Loading />
        ) : (
          <Failure error={error} onRetry={refetch} />
        )
      ) : (
        <Reports groups={groups} query={q} />
      )}
    </Page>
  )
}

function Reports({ groups, query }: { readonly groups: readonly OrgReports[]; readonly query: string }) {
  const { t } = useTranslation()
  const shown = useMemo(() => {
    const wanted = query.trim().toLowerCase()
    return groups.map(({ org, reports }) => ({
      key: org.id,
      heading: org.path.join(' › '),
      items: reports.filter(({ name, label = '', description }) =>
        `${label} ${name} ${description}`.toLowerCase().includes(wanted),
      ),
    }))
  }, [groups, query])
  if (groups.every(({ reports }) => reports.length === 0)) {
    return <Empty icon="chart" title={t('reports.none')} text={t('reports.noneText')} />
  }
  if (shown.every(({ items }) => items.length === 0))
    return <Text c="dimmed">{t('reports.nothingFound', { query })}</Text>
  return (
    <VirtualGrid
      label={t('page.reports')}
      groups={shown}
      keyOf={({ name }) => name}
      estimate={78}
      minWidth={280}
      render={(report) => <ReportCard report={report} />}
    />
  )
}

function ReportCard({ report: { name, label, description } }: { readonly report: ReportInfo }) {
  return (
    <div className="card">
      <Link to="/reports/$name" params={{ name }} className="card-link">
        <Icon name="chart" />
        <div>
          <Text fw={600}>{label ?? name}</Text>
          {description !== '' && (
            <Text size="sm" c="dimmed" className="clamp">
              {isolated(description)}
            </Text>
          )}
        </div>
      </Link>
    </div>
  )
}
