import { infiniteQueryOptions } from '@tanstack/react-query'
import { mainPaths } from '#features/portal/contract/constants.ts'
import type { PersonNames } from '#features/portal/contract/person-names.ts'
import { call } from './call.ts'
import { mainAddress } from './main.ts'

/** The filters of a list; empty ones are not sent. */
export type ListFilter = Readonly<Record<string, string | readonly string[] | undefined>>

/** An address of the console's API, such as `people` or `people/ada/runs`. */
export const consoleAddress = (path: string, query?: ListFilter): string =>
  mainAddress([mainPaths.admin, ...path.split('/').map(decodeURIComponent)], query)

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
