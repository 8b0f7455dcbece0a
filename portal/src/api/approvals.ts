import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import type {
  ApprovalDetails,
  ApprovalHandover,
  ApprovalList,
  ApprovalVoteBody,
  BulkResults,
  BulkVote,
  DecisionList,
  DelegationList,
  DelegationPeriod,
  NewDelegation,
} from '#features/portal/contract/main-requests.ts'
import * as mainRoutes from '#features/portal/contract/main-routes.ts'
import { call } from './call.ts'
import { main } from './main.ts'

/** The most approvals in one decision. */
export const maxAtOnce = 100

export const approvalsQuery = infiniteQueryOptions({
  queryKey: ['approvals'],
  queryFn: ({ signal, pageParam }) =>
    call<ApprovalList>(
      main(mainRoutes.listApprovals, {}, { limit: '200', after: pageParam === '' ? undefined : pageParam }),
      {
        signal,
      },
    ),
  initialPageParam: '',
  getNextPageParam: ({ next }) => next,
})

export const decisionsQuery = infiniteQueryOptions({
  queryKey: ['decisions'],
  queryFn: ({ signal, pageParam }) =>
    call<DecisionList>(
      main(mainRoutes.listDecisions, {}, { limit: '100', after: pageParam === '' ? undefined : pageParam }),
      {
        signal,
      },
    ),
  initialPageParam: '',
  getNextPageParam: ({ next }) => next,
})

export const approvalQuery = (id: string) =>
  queryOptions({
    queryKey: ['approval', id],
    queryFn: ({ signal }) => call<ApprovalDetails>(main(mainRoutes.getApproval, { id }), { signal }),
  })

/** A preview of approving; null if it is not shown. Another version may have another preview. */
export const changesQuery = (id: string, version: number) =>
  queryOptions({
    queryKey: ['approval-changes', id, version],
    queryFn: async ({ signal }) => {
      const request = main(mainRoutes.getApproval, { id }, { changes: 'true' })
      return (await call<ApprovalDetails>(request, { signal })).changes ?? null
    },
    staleTime: 60_000,
  })

export const decide = (id: string, vote: ApprovalVoteBody): Promise<void> =>
  call<void>(main(mainRoutes.decideApproval, { id }), { body: vote })

export const reassign = (id: string, handover: ApprovalHandover): Promise<void> =>
  call<void>(main(mainRoutes.handOverApproval, { id }), { body: handover })

export const askRequester = (id: string, text: string): Promise<void> =>
  call<void>(main(mainRoutes.askRequester, { id }), { body: { text } })

export const decideSeveral = (vote: BulkVote): Promise<BulkResults> =>
  call<BulkResults>(main(mainRoutes.decideApprovals), { body: vote })

export const delegationsQuery = queryOptions({
  queryKey: ['delegations'],
  queryFn: ({ signal }) => call<DelegationList>(main(mainRoutes.listDelegations), { signal }),
})

export const addDelegation = (period: NewDelegation): Promise<DelegationPeriod> =>
  call<DelegationPeriod>(main(mainRoutes.addDelegation), { body: period })

export const endDelegation = (id: string): Promise<void> => call<void>(main(mainRoutes.endDelegation, { id }))
