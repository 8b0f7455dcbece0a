import type { OperationDescription } from '#modules/shared/http/api-description.ts'
import { answerList, listParameters } from '#modules/shared/http/list-answer.ts'
import { journalFilters, readJournalQuery, shownCall } from '#modules/shared/runs/journal-answer.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { MainParts } from '../main-parts.ts'
import { listQuery } from './audit.ts'

export const scimOperations: Readonly<Record<string, OperationDescription>> = {
  getScimJournal: {
    route: 'GET /admin/scim-journal',
    summary: 'Calls of SCIM clients',
    query: { ...journalFilters, ...listQuery },
    answer: 'ScimJournalPage',
  },
}

/** The journals of the SCIM gateways that the portal shows, latest first. */
export async function listScimCalls({ settings, host }: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  const filters = new URLSearchParams(exchange.request.query)
  for (const name of listParameters) filters.delete(name)
  for (const [name, value] of [...filters]) if (value === '') filters.delete(name, value)
  return await answerList(
    exchange,
    ['gateway', 'failed', 'status', 'since'],
    () => {
      const query = readJournalQuery(filters, settings.given.scimJournals, host.clock())
      return {
        name: 'entries',
        read: async (page) => {
          const { entries, next } = await host.readJournal({ ...query, ...page })
          return { rows: entries.map(shownCall), next }
        },
        columns: {
          time: ({ time }) => time.toISOString(),
          gateway: ({ gateway }) => gateway,
          client: ({ caller }) => caller,
          method: ({ method }) => method,
          path: ({ path }) => path,
          status: ({ status }) => status,
          scimType: ({ scimType }) => scimType,
          error: ({ error }) => error,
          millis: ({ millis }) => millis,
          requestId: ({ requestId }) => requestId,
          workflows: ({ workflows }) => workflows.join(' '),
        },
      }
    },
    ['gateway'],
  )
}
