import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { BulkResults } from '#contract/main-requests.ts'
import { approvalsQuery, decide, decideSeveral } from '../../api/approvals.ts'
import { withoutApprovals } from './open-approvals.ts'

export interface Decision {
  readonly approvals: readonly string[]
  readonly approved: boolean
  readonly reason: string
  /** Of the one approval that was looked at. */
  readonly version?: number
}

/** By approval: 200, or what the gateway said instead. */
export type DecisionResults = BulkResults['results']

/**
 * Takes what is decided off the list at once, and puts back what was refused. The list is asked for again in any case, so
 * that what somebody else decided goes too.
 */
export function useDecision() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: async ({ approvals, approved, reason, version }: Decision): Promise<DecisionResults> => {
      const [only] = approvals
      if (only === undefined) return {}
      if (approvals.length > 1) return (await decideSeveral({ approvals, approved, reason })).results
      await decide(only, { approved, reason, ...(version === undefined ? {} : { version }) })
      return { [only]: { status: 200, text: 'success' } }
    },
    onMutate: async ({ approvals }) => {
      await client.cancelQueries({ queryKey: approvalsQuery.queryKey })
      const before = client.getQueryData(approvalsQuery.queryKey)
      if (before !== undefined) {
        client.setQueryData(approvalsQuery.queryKey, withoutApprovals(before, new Set(approvals)))
      }
      return before
    },
    onError: (_error, _decision, before) => {
      if (before !== undefined) client.setQueryData(approvalsQuery.queryKey, before)
    },
    onSettled: (_results, _error, { approvals }) => {
      for (const id of approvals) void client.invalidateQueries({ queryKey: ['approval', id] })
      void client.invalidateQueries({ queryKey: ['requests'] })
      return client.invalidateQueries({ queryKey: approvalsQuery.queryKey })
    },
  })
}
