import { queryOptions } from '@tanstack/react-query'
import type { ConsoleReassigned, ConsoleReassignment } from '#features/portal/contract/console-approvals.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type { ConsoleDefinition } from '#features/portal/contract/console-workflows.ts'
import { call } from './call.ts'
import { admin } from './console.ts'

/** The tasks of a workflow of the configuration. */
export const definitionQuery = (name: string) => queryOf(name)

/** The tasks of the definition that a run follows, with their names in the run, which tasks before them may change. */
export const pinnedDefinitionQuery = (name: string, definition: string, run: string) =>
  queryOptions({ ...queryOf(name, definition, run), retry: false })

const queryOf = (name: string, definition?: string, run?: string) =>
  queryOptions({
    queryKey: ['admin', 'workflow', name, definition ?? '', run ?? ''],
    queryFn: ({ signal }) =>
      call<ConsoleDefinition>(admin(consoleRoutes.getWorkflowDefinition, { name }, { definition, run }), { signal }),
  })

export const reassign = (id: string, body: ConsoleReassignment): Promise<ConsoleReassigned> =>
  call<ConsoleReassigned>(admin(consoleRoutes.assignApproval, { id }), { body })
