import { queryOptions } from '@tanstack/react-query'
import type { ConsoleReassigned, ConsoleReassignment } from '#contract/console-approvals.ts'
import type { ConsoleDefinition } from '#contract/console-workflows.ts'
import { call } from './call.ts'
import { consoleAddress } from './console.ts'

/** The tasks of a workflow of the configuration. */
export const definitionQuery = (name: string) => queryOf(name)

/** The tasks of the definition that a run follows, which never change. */
export const pinnedDefinitionQuery = (name: string, definition: string) =>
  queryOptions({ ...queryOf(name, definition), staleTime: Number.POSITIVE_INFINITY, retry: false })

const queryOf = (name: string, definition?: string) =>
  queryOptions({
    queryKey: ['admin', 'workflow', name, definition ?? ''],
    queryFn: ({ signal }) =>
      call<ConsoleDefinition>(consoleAddress(`workflows/${encodeURIComponent(name)}`, { definition }), { signal }),
  })

export const reassign = (id: string, body: ConsoleReassignment): Promise<ConsoleReassigned> =>
  call<ConsoleReassigned>(consoleAddress(`approvals/${encodeURIComponent(id)}/reassign`), { method: 'POST', body })
