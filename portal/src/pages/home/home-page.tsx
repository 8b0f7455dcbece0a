import { SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Navigate } from '@tanstack/react-router'
import { useEffect, useMemo, useState } from 'react'
import type { PortalLink, SearchResults } from '#features/portal/contract/main.ts'
import { orgsQuery, searchQuery, urlsQuery } from '../../api/main.ts'
import { useConfig } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { shownPages } from '../../app/pages.ts'
import { settings } from '../../app/settings.ts'
import { Answer } from '../../components/answer.tsx'
import { OrgChooser } from '../../components/org-chooser.tsx'
import { flatten } from '../../components/orgs.ts'
import { Page } from '../../components/page.tsx'
import { SearchBox } from '../../components/search-box.tsx'
import { Empty } from '../../components/states.tsx'
import { VirtualGrid } from '../../components/virtual-grid.tsx'
import { Attention } from './attention.tsx'
import { Badge } from './badge.tsx'
import { groupLinks } from './link-groups.ts'
import { Marked } from './marked.tsx'
import { WorkflowLink } from './workflow-link.tsx'

const route = getRouteApi('/')

type Workflows = SearchResults['workflows']

/** Another start page may be configured, and is shown until the user opens this one. */
let isArrival = true

export function HomePage() {
  const { t } = useTranslation()
  const config = useConfig()
  const { q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const urls = useQuery(urlsQuery)
  const workflows = useFoundWorkflows(q)
  const [isFirst] = useState(isArrival)
  useEffect(() => {
    isArrival = false
  }, [])
  const startsElsewhere = isFirst && config.startPage === 'request-access'
  if (startsElsewhere && shownPages(config, settings.apis).some(({ id }) => id === config.startPage)) {
    return <Navigate to="/request" replace />
  }
  const search = (next: string): void =>
    void navigate({ search: (old) => ({ ...old, q: next === '' ? undefined : next }), replace: true })
  return (
    <Page title={config.frontPage.title} intro={config.frontPage.text}>
      <SearchBox label={t('home.search')} value={q} onChange={search} />
      {q === '' && <Attention />}
      <Answer query={urls} shape="cards">
        {(links) => (
          <>
            {q === '' && <Marked links={links} />}
            <Links links={links} workflows={workflows} />
          </>
        )}
      </Answer>
      <FoundWorkflows workflows={workflows ?? []} />
    </Page>
  )
}

/** Workflows that match the same words as the links; undefined while the search runs, or waits for a connection. */
function useFoundWorkflows(query: string): Workflows | undefined {
  const typed = query.trim()
  const [q] = useDebouncedValue(typed, 200)
  const { data, fetchStatus } = useQuery(searchQuery(q, 'workflow'))
  if (typed === '') return []
  if (q !== typed || (fetchStatus !== 'idle' && data === undefined)) return undefined
  return data?.workflows ?? []
}

interface LinksProps {
  readonly links: readonly PortalLink[]
  readonly workflows: Workflows | undefined
}

function Links({ links, workflows }: LinksProps) {
  const { t } = useTranslation()
  const { showPortalOrgs } = useConfig()
  const { q = '', org = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const tree = useQuery({ ...orgsQuery, enabled: showPortalOrgs })
  const orgs = useMemo(() => {
    const used = new Set(links.map((link) => link.org))
    return tree.data === undefined ? [] : flatten(tree.data, 'showInPortal').filter(({ id }) => used.has(id))
  }, [tree.data, links])
  const groups = useMemo(
    () =>
      groupLinks(links, orgs, { query: q, org, elsewhere: t(orgs.length === 0 ? 'home.links' : 'home.otherLinks') }),
    [links, orgs, q, org, t],
  )
  if (links.length === 0) return <Empty icon="home" title={t('home.noLinks')} text={t('home.noLinksText')} />
  const isEmpty = groups.every(({ items }) => items.length === 0)
  const grid = isEmpty ? (
    workflows?.length === 0 && <Text c="dimmed">{t('home.nothingFound', { query: q })}</Text>
  ) : (
    <VirtualGrid
      groups={groups}
      keyOf={({ name }) => name}
      render={(link) => <Badge link={link} />}
      label={t('home.links')}
      estimate={68}
      minWidth={230}
    />
  )
  if (orgs.length < 2) return grid
  return (
    <div className="split">
      <OrgChooser
        orgs={orgs}
        chosen={org}
        withAll
        onChoose={(id) => void navigate({ search: (old) => ({ ...old, org: id === '' ? undefined : id }) })}
      />
      {grid}
    </div>
  )
}

function FoundWorkflows({ workflows }: { readonly workflows: Workflows }) {
  const { t } = useTranslation()
  if (workflows.length === 0) return null
  return (
    <Stack component="section" gap="xs" aria-labelledby="found-workflows">
      <Title order={2} size="h5" id="found-workflows">
        {t('home.canRequest')}
      </Title>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing={12}>
        {workflows.map(({ name, label, description }) => (
          <WorkflowLink key={name} name={name} label={label} description={description} />
        ))}
      </SimpleGrid>
    </Stack>
  )
}
