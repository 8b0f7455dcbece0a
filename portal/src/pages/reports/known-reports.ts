import { useQueries, useQuery } from '@tanstack/react-query'
import type { ReportInfo } from '#features/reports/contract/reports.ts'
import { orgsQuery } from '../../api/main.ts'
import { reportListQuery } from '../../api/reports.ts'
import { type FlatOrg, flatten } from '../../components/orgs.ts'

export interface OrgReports {
  readonly org: FlatOrg
  readonly reports: readonly ReportInfo[]
}

interface KnownReports {
  /** Undefined until all are loaded. */
  readonly groups: readonly OrgReports[] | undefined
  readonly error: Error | null
  readonly refetch: () => void
}

/** The reports of all organizations that the user sees. */
export function useKnownReports(): KnownReports {
  const tree = useQuery(orgsQuery)
  const orgs = tree.data === undefined ? [] : flatten(tree.data, 'showInReports')
  const lists = useQueries({ queries: orgs.map(({ id }) => reportListQuery(id)) })
  const isKnown = tree.data !== undefined && lists.every(({ data }) => data !== undefined)
  return {
    groups: isKnown ? orgs.map((org, i) => ({ org, reports: lists[i]?.data?.reports ?? [] })) : undefined,
    error: tree.error ?? lists.find(({ error }) => error !== null)?.error ?? null,
    refetch: () => {
      void tree.refetch()
      for (const list of lists) if (list.data === undefined) void list.refetch()
    },
  }
}
