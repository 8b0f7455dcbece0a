import { queryOptions } from '@tanstack/react-query'
import { mainPaths } from '#features/portal/contract/constants.ts'
import type {
  MainConfig,
  Organization,
  PortalLink,
  ProfileChange,
  SearchResults,
  UserData,
} from '#features/portal/contract/main.ts'
import { settings } from '../app/settings.ts'
import { address, call } from './call.ts'
import { noteOwner } from './page-owner.ts'

/** An address of the Main API. */
export const mainAddress = (
  parts: readonly string[],
  query?: Readonly<Record<string, string | readonly string[] | undefined>>,
): string => address(settings.apis.main ?? '', parts, query)

/** For data that hardly changes while a user looks at it. */
const staleMillis = 5 * 60_000

export const configQuery = queryOptions({
  queryKey: ['config'],
  queryFn: ({ signal }) => call<MainConfig>(mainAddress([mainPaths.config]), { signal }),
  staleTime: staleMillis,
})

export const userQuery = queryOptions({
  queryKey: ['user'],
  queryFn: async ({ signal }) => {
    const user = await call<UserData>(mainAddress([mainPaths.user]), { signal })
    noteOwner(user.dn)
    return user
  },
  staleTime: staleMillis,
})

export const orgsQuery = queryOptions({
  queryKey: ['orgs'],
  queryFn: ({ signal }) => call<Organization>(mainAddress([mainPaths.orgs]), { signal }),
  staleTime: staleMillis,
})

export const urlsQuery = queryOptions({
  queryKey: ['urls'],
  queryFn: ({ signal }) => call<readonly PortalLink[]>(mainAddress([mainPaths.urls]), { signal }),
  staleTime: staleMillis,
})

/** The fewest characters that the API searches for. */
export const minSearch = 2

export const searchQuery = (q: string, kind: 'workflow' | 'url' | 'person') =>
  queryOptions({
    queryKey: ['search', kind, q],
    queryFn: ({ signal }) => call<SearchResults>(mainAddress([mainPaths.search], { q, kind }), { signal }),
    enabled: q.length >= minSearch && q.length <= 100,
    staleTime: staleMillis,
  })

/** Each use extends the session. */
export const extendSession = (): Promise<MainConfig> => call<MainConfig>(mainAddress([mainPaths.config]))

export const saveProfile = (change: ProfileChange): Promise<UserData> =>
  call<UserData>(mainAddress([mainPaths.user]), { method: 'PUT', body: change })
