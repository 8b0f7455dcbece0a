import { queryOptions } from '@tanstack/react-query'
import { mainPaths } from '#features/portal/contract/constants.ts'
import type { DelegationRights, SubmitOutcomes, WorkflowListItem } from '#features/portal/contract/main.ts'
import type { CatalogItem } from '#features/portal/contract/main-catalog.ts'
import type { WorkflowRequest } from '#features/portal/contract/main-requests.ts'
import { call } from './call.ts'
import { mainAddress } from './main.ts'

/** Rows of dynamic workflows are valid for an hour, so they are fetched again well before. */
const staleMillis = 10 * 60_000

export const workflowsQuery = (org: string) =>
  queryOptions({
    queryKey: ['workflows', org],
    queryFn: ({ signal }) =>
      call<readonly WorkflowListItem[]>(mainAddress([mainPaths.workflows, 'org', org]), { signal }),
    staleTime: staleMillis,
  })

export const catalogItemQuery = (name: string) =>
  queryOptions({
    queryKey: ['catalog-item', name],
    queryFn: ({ signal }) => call<CatalogItem>(mainAddress([mainPaths.workflows, 'named', name]), { signal }),
    staleTime: staleMillis,
  })

export const rightsQuery = (workflowName: string) =>
  queryOptions({
    queryKey: ['rights', workflowName],
    queryFn: ({ signal }) =>
      call<DelegationRights>(mainAddress([mainPaths.workflows, 'candelegate'], { workflowName }), { signal }),
    staleTime: staleMillis,
  })

export const submitCart = (lines: readonly WorkflowRequest[]): Promise<SubmitOutcomes> =>
  call<SubmitOutcomes>(mainAddress([mainPaths.workflows], { outcomes: 'true' }), { method: 'PUT', body: lines })
