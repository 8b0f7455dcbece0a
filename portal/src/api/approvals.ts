import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { mainPaths } from '#features/portal/contract/constants.ts'
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
import { call } from './call.ts'
import { mainAddress } from './main.ts'

/** The most approvals in one decision. */
export const maxAtOnce = 100

export const approvalsQuery = infiniteQueryOptions({
  queryKey: ['approvals'],
  queryFn: ({ signal, pageParam }) =>
    call<ApprovalList>(
      mainAddress([mainPaths.approvals], { limit: '200', after: pageParam === '' ? undefined : pageParam }),
      { signal },
    ),
  initialPageParam: '',
  getNextPageParam: ({ next }) => next,
})

export const decisionsQuery = infiniteQueryOptions({
  queryKey: ['decisions'],
  queryFn: ({ signal, pageParam }) =>
    call<DecisionList>(
      mainAddress([mainPaths.decisions], { limit: '100', after: pageParam === '' ? undefined : pageParam }),
      { signal },
    ),
  initialPageParam: '',
  getNextPageParam: ({ next }) => next,
})

export const approvalQuery = (id: string) =>
  queryOptions({
    queryKey: ['approval', id],
    queryFn: ({ signal }) => call<ApprovalDetails>(mainAddress([mainPaths.approvals, id]), { signal }),
  })

/** A preview of approving; null if it is not shown. Another version may have another preview. */
export const changesQuery = (id: string, version: number) =>
  queryOptions({
    queryKey: ['approval-changes', id, version],
    queryFn: async ({ signal }) => {
      const address = mainAddress([mainPaths.approvals, id], { changes: 'true' })
      return (await call<ApprovalDetails>(address, { signal })).changes ?? null
    },
    staleTime: 60_000,
  })

export const decide = (id: string, vote: ApprovalVoteBody): Promise<void> =>
  call<void>(mainAddress([mainPaths.approvals, id]), { method: 'PUT', body: vote })

export const reassign = (id: string, handover: ApprovalHandover): Promise<void> =>
  call<void>(mainAddress([mainPaths.approvals, id, 'reassign']), { method: 'POST', body: handover })

export const askRequester = (id: string, text: string): Promise<void> =>
  call<void>(mainAddress([mainPaths.approvals, id, 'questions']), { method: 'POST', body: { text } })

export const decideSeveral = (vote: BulkVote): Promise<BulkResults> =>
  call<BulkResults>(mainAddress([mainPaths.approvals]), { method: 'PUT', body: vote })

export const delegationsQuery = queryOptions({
  queryKey: ['delegations'],
  queryFn: ({ signal }) => call<DelegationList>(mainAddress([mainPaths.delegations]), { signal }),
})

export const addDelegation = (period: NewDelegation): Promise<DelegationPeriod> =>
  call<DelegationPeriod>(mainAddress([mainPaths.delegations]), { method: 'POST', body: period })

export const endDelegation = (id: string): Promise<void> =>
  call<void>(mainAddress([mainPaths.delegations, id]), { method: 'DELETE' })
