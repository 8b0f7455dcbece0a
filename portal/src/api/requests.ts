import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import type {
  RequestDetails,
  RequestList,
  RequestState,
  RequestSummary,
} from '#features/portal/contract/main-requests.ts'
import * as mainRoutes from '#features/portal/contract/main-routes.ts'
import { call } from './call.ts'
import { main } from './main.ts'

export type About = 'mine' | 'me'

/** The number of requests per page. */
const pageSize = '200'

export const requestsQuery = (about: About, states: readonly RequestState[]) =>
  infiniteQueryOptions({
    queryKey: ['requests', about, states],
    queryFn: ({ signal, pageParam }) =>
      call<RequestList>(
        main(
          mainRoutes.listRequests,
          {},
          {
            about,
            state: states,
            limit: pageSize,
            after: pageParam === '' ? undefined : pageParam,
          },
        ),
        { signal },
      ),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
  })

/** The latest requests that did not lead to access, for the front page. */
export const troubledQuery = queryOptions({
  queryKey: ['requests', 'troubled'],
  queryFn: ({ signal }) =>
    call<RequestList>(
      main(
        mainRoutes.listRequests,
        {},
        {
          state: ['failed', 'incident', 'denied', 'expired', 'cancelled'],
          limit: '20',
        },
      ),
      { signal },
    ),
})

const going: ReadonlySet<RequestState> = new Set(['ready', 'running', 'waiting', 'incident'])
export const isGoing = (state: RequestState): boolean => going.has(state)

export const requestQuery = (id: string) =>
  queryOptions({
    queryKey: ['request', id],
    queryFn: ({ signal }) => call<RequestDetails>(main(mainRoutes.getRequest, { id }), { signal }),
  })

export const cancelRequest = (id: string, reason: string): Promise<RequestSummary> =>
  call<RequestSummary>(main(mainRoutes.cancelRequest, { id }), {
    body: reason === '' ? {} : { reason },
  })

export const answerApprover = (id: string, text: string): Promise<void> =>
  call<void>(main(mainRoutes.answerApprover, { id }), { body: { text } })
