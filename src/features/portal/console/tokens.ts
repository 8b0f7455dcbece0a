import { tokenIssuers } from '#features/portal/contract/console-tokens.ts'
import type { MainParts } from '#features/portal/front/main-parts.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, notFound } from '#sdk/api/json-answer.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

export const tokenOperations = {
  getTokenIssuers: {
    summary: 'The endpoints of the token service and the OpenID Connect issuers, with the public facts of their keys',
    answer: 'TokenIssuers',
    handle: showTokenIssuers,
  },
} satisfies OperationTable<MainParts>

/** Who issues tokens, and with which keys. */
async function showTokenIssuers({ host }: MainParts, { request }: Exchange): Promise<GatewayResponse> {
  if (host.tokenReport === undefined) throw notFound('this process is not a gateway')
  return answer(wireForm(tokenIssuers, { issuers: await host.tokenReport.describe(request) }))
}
