import { system } from '#features/portal/contract/console-system.ts'
import type { MainParts } from '#features/portal/front/main-parts.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, notFound } from '#sdk/api/json-answer.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

export const systemOperations = {
  getSystem: {
    summary: 'Version, replicas, waiting work, listeners with certificates, database and disk',
    answer: 'System',
    handle: showSystem,
  },
} satisfies OperationTable<MainParts>

/** The state of the installation. */
async function showSystem({ host }: MainParts): Promise<GatewayResponse> {
  if (host.readSystem === undefined) throw notFound('this process is not a gateway')
  return answer(wireForm(system, await host.readSystem()))
}
