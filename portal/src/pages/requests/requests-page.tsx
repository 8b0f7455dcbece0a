import { Button, Group, NativeSelect, SegmentedControl, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { requestsQuery } from '../../api/requests.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { matches } from '../../components/matching.ts'
import { useNextPage } from '../../components/next-page.ts'
import { Page } from '../../components/page.tsx'
import { Names, namesIn } from '../../components/person-names.tsx'
import { stateFilters } from '../../components/request-states.ts'
import { SearchBox } from '../../components/search-box.tsx'
import { SearchExtent } from '../../components/search-extent.tsx'
import { Empty, Failure, Loading } from '../../components/states.tsx'
import { VirtualGrid } from '../../components/virtual-grid.tsx'
import { RequestRow } from './request-row.tsx'

const route = getRouteApi('/requests')

/** Requests by the user, or for the user. */
export function RequestsPage() {
  const { t } = useTranslation()
  const { about, state = '', q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const change = (next: { about?: string; state?: string; q?: string }): void => {
    const given = { about, state, q, ...next }
    const search = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== ''))
    void navigate({ search, replace: true })
  }
  return (
    <Page title={t('page.requests')}>
      <Group gap="sm" align="end">
        <SegmentedControl
          aria-label={t('requests.about')}
          value={about === 'me' ? 'me' : 'mine'}
          onChange={(value) => change({ about: value === 'me' ? 'me' : '' })}
          data={[
            { value: 'mine', label: t('requests.mine') },
            { value: 'me', label: t('requests.forMe') },
          ]}
        />
        <NativeSelect
          aria-label={t('requests.state')}
          value={state}
          onChange={(event) => change({ state: event.currentTarget.value })}
          data={Object.entries(stateFilters).map(([value, { text }]) => ({ value, label: t(text) }))}
        />
        <SearchBox label={t('requests.search')} value={q} onChange={(next) => change({ q: next })} />
      </Group>
      <RequestList about={about === 'me' ? 'me' : 'mine'} state={state} query={q} />
    </Page>
  )
}

interface RequestListProps {
  readonly about: 'mine' | 'me'
  readonly state: string
  readonly query: string
}

function RequestList({ about, state, query }: RequestListProps) {
  const { t } = useTranslation()
  const list = useInfiniteQuery(requestsQuery(about, stateFilters[state]?.states ?? []))
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage, error } = list
  const more = useNextPage(list)
  const all = useMemo(() => list.data?.pages.flatMap(({ requests }) => requests) ?? [], [list.data])
  const groups = useMemo(() => {
    const nameOf = namesIn(list.data?.pages ?? [], true)
    const items = all.filter(({ label, subject, requestor, reason = '' }) =>
      matches(query, label, nameOf(subject), nameOf(requestor), reason),
    )
    return [{ key: 'all', items }]
  }, [all, list.data, query])

  if (list.data === undefined) {
    return error === null ? <Loading /> : <Failure error={error} onRetry={() => void list.refetch()} />
  }
  if (all.length === 0) {
    return (
      <Empty icon="list" title={t('requests.none')} text={t('requests.noneText')}>
        <Button renderRoot={(props) => <Link to="/request" {...props} />}>{t('page.request')}</Button>
      </Empty>
    )
  }
  const found = groups[0]?.items.length ?? 0
  return (
    <Names of={list.data.pages}>
      {found === 0 && !hasNextPage && <Text c="dimmed">{t('home.nothingFound', { query })}</Text>}
      <VirtualGrid
        groups={groups}
        keyOf={({ id }) => id}
        render={(request) => <RequestRow request={request} />}
        label={t('page.requests')}
        estimate={72}
        {...(query === '' ? { onEnd: more } : {})}
      />
      {isFetchNextPageError && error !== null && <Failure error={error} />}
      {query !== '' && <SearchExtent list={list} loaded={all.length} />}
      {query === '' && hasNextPage && (
        <Group justify="center">
          <Button variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            {t('action.more')}
          </Button>
        </Group>
      )}
    </Names>
  )
}
