import { useDebouncedValue } from '@mantine/hooks'
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { minSearch, searchQuery, urlsQuery } from '../../api/main.ts'
import { noteUse } from '../../api/marks.ts'
import { requestsQuery } from '../../api/requests.ts'
import { namesIn } from '../../components/person-names.tsx'
import { stateLooks } from '../../components/request-states.ts'
import { safeAddress } from '../../components/safe-address.ts'
import { useConfig } from '../config.tsx'
import { consolePages } from '../console-pages.ts'
import { useTranslation } from '../i18n.tsx'
import { type PageEntry, shownPages } from '../pages.ts'
import { settings } from '../settings.ts'
import type { PaletteGroup } from './palette-items.ts'

interface Searched {
  readonly groups: readonly PaletteGroup[]
  /** More may come. */
  readonly isPending: boolean
  readonly error: Error | null
}

/** Everything that the palette searches: what the user sees elsewhere in the portal, and nothing else. */
export function usePaletteGroups(query: string): Searched {
  const { t } = useTranslation()
  const config = useConfig()
  const navigate = useNavigate()
  const client = useQueryClient()
  const typed = query.trim()
  const [q] = useDebouncedValue(typed, 200)
  const pages = shownPages(config, settings.apis)
  const { urls, requests, workflows, people } = usePaletteQueries(q, new Set(pages.map(({ id }) => id)))
  const nameOf = namesIn(requests.data?.pages.slice(0, 1) ?? [])
  const isConsole = config.administrator && !config.hidePages.includes('console')
  const groups: readonly PaletteGroup[] = [
    {
      title: 'palette.pages',
      items: [...pages, ...(isConsole ? consolePages : [])].map(({ to, title, icon }) => ({
        key: `page ${to}`,
        label: t(title),
        icon,
        // The router checks pages of the console when they open.
        open: () => void navigate({ to: to as PageEntry['to'] }),
      })),
    },
    {
      title: 'palette.links',
      items: (typed === '' ? [] : (urls.data ?? [])).map(({ name, label, url }) => ({
        key: `link ${name}`,
        label,
        hint: t('home.newTab'),
        icon: 'external',
        open: () => {
          const address = safeAddress(url, window.location.href)
          if (address === undefined) return
          noteUse(client, { kind: 'url', name })
          window.open(address, '_blank', 'noopener,noreferrer')
        },
      })),
    },
    {
      title: 'page.request',
      isFound: true,
      items: (typed === '' ? [] : (workflows.data?.workflows ?? [])).map(({ name, label, description, dynamic }) => ({
        key: `workflow ${name}`,
        label,
        hint: description,
        icon: 'key',
        // A dynamic workflow has several items.
        open: () =>
          void (dynamic === true
            ? navigate({ to: '/request', search: { q: label } })
            : navigate({ to: '/request/item', search: { name } })),
      })),
    },
    {
      title: 'palette.requests',
      items: (typed === '' ? [] : (requests.data?.pages[0]?.requests ?? [])).map(({ id, label, subject, state }) => ({
        key: `request ${id}`,
        label,
        hint: `${nameOf(subject)} · ${t(stateLooks[state].text)}`,
        icon: 'list',
        open: () => void navigate({ to: '/requests/$id', params: { id } }),
      })),
    },
    {
      title: 'palette.people',
      isFound: true,
      items: (typed === '' ? [] : (people.data?.people ?? [])).map(({ uid, displayName }) => ({
        key: `person ${uid}`,
        label: displayName,
        hint: isConsole ? uid : t('palette.person', { login: uid }),
        icon: 'person',
        open: () => void navigate({ to: isConsole ? '/console/people' : '/requests', search: { q: uid } }),
      })),
    },
  ]
  const queries = [urls, requests, workflows, people]
  return {
    groups,
    isPending: q !== typed || queries.some(({ data, fetchStatus }) => data === undefined && fetchStatus !== 'idle'),
    error: queries.map(({ error }) => error).find((error) => error !== null) ?? null,
  }
}

/** Only of pages that the user has. */
function usePaletteQueries(q: string, pages: ReadonlySet<PageEntry['id']>) {
  const { canSearchPeople } = useConfig()
  const isSearch = q.length >= minSearch
  const urls = useQuery({ ...urlsQuery, enabled: pages.has('front-page') })
  const requests = useInfiniteQuery({ ...requestsQuery('mine', []), enabled: pages.has('requests') })
  const workflows = useQuery({ ...searchQuery(q, 'workflow'), enabled: isSearch && pages.has('request-access') })
  const people = useQuery({
    ...searchQuery(q, 'person'),
    enabled: isSearch && canSearchPeople && pages.has('requests'),
  })
  return { urls, requests, workflows, people }
}
