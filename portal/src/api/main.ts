import { queryOptions } from '@tanstack/react-query'
import type {
  MainConfig,
  Organization,
  PortalLink,
  ProfileChange,
  SearchResults,
  UserData,
} from '#features/portal/contract/main.ts'
import * as mainRoutes from '#features/portal/contract/main-routes.ts'
import { settings } from '../app/settings.ts'
import { type ApiRequest, apiRequest, call, type Given } from './call.ts'
import { noteOwner } from './page-owner.ts'

type MainRoute = (typeof mainRoutes)[keyof typeof mainRoutes]

/** A call of the Main API. */
export const main = <R extends MainRoute>(route: R, ...given: Given<R>): ApiRequest =>
  apiRequest(settings.apis.main ?? '', route, given)

/** For data that hardly changes while a user looks at it. */
const staleMillis = 5 * 60_000

export const configQuery = queryOptions({
  queryKey: ['config'],
  queryFn: ({ signal }) => call<MainConfig>(main(mainRoutes.getConfig), { signal }),
  staleTime: staleMillis,
})

export const userQuery = queryOptions({
  queryKey: ['user'],
  queryFn: async ({ signal }) => {
    const user = await call<UserData>(main(mainRoutes.getUser), { signal })
    noteOwner(user.dn)
    return user
  },
  staleTime: staleMillis,
})

export const orgsQuery = queryOptions({
  queryKey: ['orgs'],
  queryFn: ({ signal }) => call<Organization>(main(mainRoutes.getOrgs), { signal }),
  staleTime: staleMillis,
})

export const urlsQuery = queryOptions({
  queryKey: ['urls'],
  queryFn: ({ signal }) => call<readonly PortalLink[]>(main(mainRoutes.listLinks), { signal }),
  staleTime: staleMillis,
})

/** The fewest characters that the API searches for. */
export const minSearch = 2

export const searchQuery = (q: string, kind: 'workflow' | 'url' | 'person') =>
  queryOptions({
    queryKey: ['search', kind, q],
    queryFn: ({ signal }) => call<SearchResults>(main(mainRoutes.search, {}, { q, kind }), { signal }),
    enabled: q.length >= minSearch && q.length <= 100,
    staleTime: staleMillis,
  })

/** Each use extends the session. */
export const extendSession = (): Promise<MainConfig> => call<MainConfig>(main(mainRoutes.getConfig))

export const saveProfile = (change: ProfileChange): Promise<UserData> =>
  call<UserData>(main(mainRoutes.changeUser), { body: change })
