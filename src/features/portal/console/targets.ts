import { type ConsoleTarget, consoleTarget } from '#features/portal/contract/console-targets.ts'
import type { MainParts } from '#features/portal/front/main-parts.ts'
import { answerList, listQuery } from '#features/portal/runs/list-answer.ts'
import { wireForm } from '#kernel/wire.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import type { TargetStatus } from '#workflows/targets/target-status.ts'
import { pageByName } from './named-page.ts'

export const targetOperations = {
  listTargets: {
    summary: 'The targets, each checked now, with the failures that this process saw',
    query: { q: 'A part of the name or the class', ...listQuery },
    answer: 'ConsoleTargets',
    handle: listTargets,
  },
} satisfies OperationTable<MainParts>

async function listTargets({ host }: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  return await answerList(exchange, ['q'], ({ q: [q = ''] }) => ({
    name: 'targets',
    read: async (page) => {
      const word = q.trim().toLowerCase()
      const found = (await host.readTargets()).filter(({ name, className }) =>
        `${name}\n${className}`.toLowerCase().includes(word),
      )
      return pageByName(found.map(targetDocument), page)
    },
    columns: {
      name: ({ name }) => name,
      class: ({ className }) => className,
      health: ({ health }) => health,
      problem: ({ problem }) => problem,
      failures: ({ failures }) => failures,
      since: ({ since }) => since,
      lastFailure: ({ lastFailure }) => lastFailure?.time,
      lastError: ({ lastFailure }) => lastFailure && `${lastFailure.code}: ${lastFailure.message}`,
      incidents: ({ incidents }) => incidents,
    },
  }))
}

const targetDocument = (status: TargetStatus): ConsoleTarget => wireForm(consoleTarget, status)
