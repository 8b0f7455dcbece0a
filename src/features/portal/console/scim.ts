import { scimTokens } from '#features/portal/contract/console-tokens.ts'
import type { MainParts } from '#features/portal/front/main-parts.ts'
import { answerList, listParameters, listQuery } from '#features/portal/runs/list-answer.ts'
import { journalFilters, readJournalQuery, shownCall } from '#features/scim/journal/journal-answer.ts'
import { tokenState } from '#features/scim/tokens/client-token.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer } from '#sdk/api/json-answer.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

export const scimOperations = {
  getScimJournal: {
    summary: 'Calls of SCIM clients',
    query: { ...journalFilters, ...listQuery },
    answer: 'ScimJournalPage',
    handle: listScimCalls,
  },
  getScimTokens: {
    summary: 'Tokens of SCIM clients, with their expiry and last use',
    answer: 'ScimTokens',
    handle: listScimTokens,
  },
} satisfies OperationTable<MainParts>

async function listScimTokens({ host }: MainParts): Promise<GatewayResponse> {
  const now = host.clock()
  const tokens = (await host.clientTokens.list()).map((token) => ({ ...token, state: tokenState(token, now) }))
  return answer(wireForm(scimTokens, { tokens }))
}

/** The journals of the SCIM gateways that the portal shows, latest first. */
async function listScimCalls({ settings, host }: MainParts, exchange: Exchange): Promise<GatewayResponse> {
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
        file: 'scim-journal',
        read: async (page) => {
          const { entries, next } = await host.journals.list({ ...query, ...page })
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
          dryRun: ({ dryRun = false }) => dryRun,
        },
      }
    },
    ['gateway'],
  )
}
