import type { ConsoleDefinition, ConsoleWorkflow } from '#features/portal/contract/console-workflows.ts'
import type { MainParts } from '#features/portal/front/main-parts.ts'
import { answerList, listQuery } from '#features/portal/runs/list-answer.ts'
import { answer, notFound } from '#sdk/api/json-answer.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { pageByName } from './named-page.ts'

/** The workflows of the configuration. */
export const workflowOperations = {
  listConfiguredWorkflows: {
    summary: 'The workflows of the configuration, with their open runs',
    query: { q: 'A part of the name or the label', ...listQuery },
    answer: 'ConsoleWorkflows',
    handle: listWorkflows,
  },
  getWorkflowDefinition: {
    summary: 'The tasks of a workflow, without the values that they write',
    query: {
      definition: 'The hash of a definition that a run follows; that of the configuration if absent',
      run: 'The id of a run: its parameters fill the names of the tasks',
    },
    answer: 'ConsoleDefinition',
    handle: showWorkflow,
  },
} satisfies OperationTable<MainParts>

async function listWorkflows({ host }: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  return await answerList(exchange, ['q'], ({ q: [q = ''] }) => ({
    name: 'workflows',
    read: async (page) => {
      const word = q.trim().toLowerCase()
      const all: readonly ConsoleWorkflow[] = await host.workflowCatalog.list()
      return pageByName(
        all.filter(({ name, label }) => `${name}\n${label}`.toLowerCase().includes(word)),
        page,
      )
    },
    columns: {
      name: ({ name }) => name,
      label: ({ label }) => label,
      description: ({ description }) => description,
      org: ({ org }) => org,
      inList: ({ inList }) => inList,
      ready: ({ open }) => open?.ready ?? 0,
      running: ({ open }) => open?.running ?? 0,
      waiting: ({ open }) => open?.waiting ?? 0,
      incident: ({ open }) => open?.incident ?? 0,
    },
  }))
}

async function showWorkflow({ host }: MainParts, { request }: Exchange, name = ''): Promise<GatewayResponse> {
  const { definition, run: runs } = readQuery(request.query, ['definition', 'run'])
  const [[hash], [run]] = [definition, runs]
  const parameters = run === undefined ? undefined : (await host.runs.parametersOf([run])).get(run)
  const found: ConsoleDefinition | undefined = await host.workflowCatalog.get(name, hash, parameters)
  if (found !== undefined) return answer(found)
  const text =
    hash === undefined ? 'There is no such workflow.' : 'This definition of the workflow is no longer available.'
  throw notFound(`no workflow "${name.slice(0, 80)}"`, text)
}
