import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { BulkResults } from '#features/portal/contract/main-requests.ts'
import { approvalsQuery, decide, decideSeveral, decisionsQuery } from '../../api/approvals.ts'
import { withoutApprovals } from './open-approvals.ts'

export interface Decision {
  readonly approvals: readonly string[]
  readonly approved: boolean
  readonly reason: string
  /** The version of the single approval that the user saw. */
  readonly version?: number
}

/** By approval: 200, or the gateway's error status. */
export type DecisionResults = BulkResults['results']

/**
 * Removes decided approvals from the list at once, and restores rejected ones. The list is always fetched again, so
 * that approvals that other users decided disappear too.
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
      void client.invalidateQueries({ queryKey: decisionsQuery.queryKey })
      void client.invalidateQueries({ queryKey: ['notifications'] })
      return client.invalidateQueries({ queryKey: approvalsQuery.queryKey })
    },
  })
}
