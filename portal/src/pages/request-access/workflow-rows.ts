import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQueries, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { WorkflowListItem } from '#features/portal/contract/main.ts'
import { searchQuery } from '../../api/main.ts'
import { workflowsQuery } from '../../api/workflows.ts'
import type { FlatOrg } from '../../components/orgs.ts'
import { select } from './select-rows.ts'

/** Up to this many orgs are read completely; of more, one, or those with search results. */
export const askAll = 20

export interface FoundRows {
  readonly rows: readonly WorkflowListItem[]
  readonly isPending: boolean
  readonly error: Error | null
  retry(): void
}

/** The workflows of one org or, without one or with a query, of any. */
export function useWorkflowRows(orgs: readonly FlatOrg[], org: string, query: string): FoundRows {
  const isMany = orgs.length > askAll
  const [q] = useDebouncedValue(query.trim(), 200)
  const found = useQuery({
    ...searchQuery(q, 'workflow'),
    enabled: isMany && q.length >= 2,
    placeholderData: keepPreviousData,
  })
  const asked = useMemo(() => {
    if (q === '' && org !== '') return [org]
    if (!isMany) return orgs.map(({ id }) => id)
    const ids = new Set((found.data?.workflows ?? []).map((one) => (one.org === '' ? org : one.org)))
    return [...ids.add(org)].filter((id) => id !== '')
  }, [q, org, orgs, isMany, found.data])
  const lists = useQueries({ queries: asked.map(workflowsQuery) })
  const named = useMemo(() => new Set(found.data?.workflows.map(({ name }) => name)), [found.data])
  const all = lists.flatMap(({ data }) => data ?? [])
  return {
    rows: useMemo(() => select(all, q, named), [all, q, named]),
    isPending: lists.some(({ isPending }) => isPending) || (found.fetchStatus !== 'idle' && lists.length === 0),
    error: lists.find(({ error, data }) => error !== null && data === undefined)?.error ?? null,
    retry: () => {
      for (const list of lists) if (list.error !== null) void list.refetch()
    },
  }
}
