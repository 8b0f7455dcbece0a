import { queryOptions } from '@tanstack/react-query'
import type { DelegationRights, SubmitOutcomes, WorkflowListItem } from '#features/portal/contract/main.ts'
import type { CatalogItem } from '#features/portal/contract/main-catalog.ts'
import type { WorkflowRequest } from '#features/portal/contract/main-requests.ts'
import * as mainRoutes from '#features/portal/contract/main-routes.ts'
import { call } from './call.ts'
import { main } from './main.ts'

/** Rows of dynamic workflows are valid for an hour, so they are fetched again well before. */
const staleMillis = 10 * 60_000

export const workflowsQuery = (org: string) =>
  queryOptions({
    queryKey: ['workflows', org],
    queryFn: ({ signal }) =>
      call<readonly WorkflowListItem[]>(main(mainRoutes.listWorkflows, { orgId: org }), { signal }),
    staleTime: staleMillis,
  })

export const catalogItemQuery = (name: string) =>
  queryOptions({
    queryKey: ['catalog-item', name],
    queryFn: ({ signal }) => call<CatalogItem>(main(mainRoutes.getCatalogItem, { name }), { signal }),
    staleTime: staleMillis,
  })

export const rightsQuery = (workflowName: string) =>
  queryOptions({
    queryKey: ['rights', workflowName],
    queryFn: ({ signal }) =>
      call<DelegationRights>(main(mainRoutes.getDelegationRights, {}, { workflowName }), { signal }),
    staleTime: staleMillis,
  })

export const submitCart = (lines: readonly WorkflowRequest[]): Promise<SubmitOutcomes> =>
  call<SubmitOutcomes>(main(mainRoutes.submit, {}, { outcomes: 'true' }), { body: lines })
