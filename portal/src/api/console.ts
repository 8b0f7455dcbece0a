import { infiniteQueryOptions } from '@tanstack/react-query'
import type * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type { PersonNames } from '#features/portal/contract/person-names.ts'
import { settings } from '../app/settings.ts'
import { type ApiRequest, apiRequest, call, type Given, type Query, withQuery } from './call.ts'

/** The filters of a list; empty ones are not sent. */
export type ListFilter = Query

type ConsoleRoute = (typeof consoleRoutes)[keyof typeof consoleRoutes]

/** A call of the console's API. */
export const admin = <R extends ConsoleRoute>(route: R, ...given: Given<R>): ApiRequest =>
  apiRequest(settings.apis.main ?? '', route, given)

/** The path of a list or an entry in the console's API, such as `people` or `people/ada/runs`. */
export const consolePath = <R extends ConsoleRoute>(route: R, ...given: Given<R>): string =>
  apiRequest('', route, given).address.slice('/admin/'.length)

/** The address of such a path. */
export const consoleAddress = (path: string, query?: Query): string =>
  withQuery(`${settings.apis.main ?? ''}/admin/${path}`, query)

const sent = (filter: ListFilter): ListFilter =>
  Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined && value !== ''))

type ListAnswer = Readonly<Record<string, unknown>> & { readonly next?: string; readonly names?: PersonNames }

/** The pages of a list of the console; its rows are the property `name` of each answer. */
export const listQuery = <R>(path: string, name: string, filter: ListFilter) =>
  infiniteQueryOptions({
    queryKey: ['admin', path, sent(filter)],
    queryFn: async ({ signal, pageParam }) => {
      const query = { ...sent(filter), limit: '100', ...(pageParam === '' ? {} : { after: pageParam }) }
      const { next, names = {}, ...answer } = await call<ListAnswer>(consoleAddress(path, query), { signal })
      return { rows: answer[name] as readonly R[], names, ...(next === undefined ? {} : { next }) }
    },
    initialPageParam: '',
    getNextPageParam: ({ next }: { readonly next?: string }) => next,
  })

/** The same list as a file. */
export const exportAddress = (path: string, filter: ListFilter): string =>
  consoleAddress(path, { ...sent(filter), format: 'csv' })
