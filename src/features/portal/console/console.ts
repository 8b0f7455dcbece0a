import { isAdministrator, type MainParts, requireOperator } from '#features/portal/front/main-parts.ts'
import { runRoutes } from '#features/portal/runs/run-administration.ts'
import { GatewayError } from '#kernel/errors.ts'
import { answerRoute, type Routes } from '#sdk/api/routes.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { approvalRoutes } from './approvals.ts'
import { listAudit, showVerification, startVerification } from './audit.ts'
import { explainRequest, listConfigurationObjects, showConfiguration } from './configuration.ts'
import { groupRoutes } from './groups.ts'
import { peopleRoutes } from './people.ts'
import { personChangeRoutes } from './person-changes.ts'
import { listScimCalls } from './scim.ts'
import { showStatistics } from './statistics.ts'
import { showSystem } from './system.ts'
import { targetRoutes } from './targets.ts'
import { showTokenIssuers } from './tokens.ts'
import { workflowRoutes } from './workflows.ts'

/** Every route is described in `../api-description.ts`. A route that changes something calls `requireOperator`. */
export const consoleRoutes: Routes<MainParts> = {
  'GET /admin/audit': listAudit,
  'GET /admin/audit/verification': showVerification,
  'POST /admin/audit/verification': startVerification,
  'GET /admin/configuration': showConfiguration,
  'GET /admin/configuration/objects': listConfigurationObjects,
  'POST /admin/configuration/explain': explainRequest,
  ...runRoutes('/admin', requireOperator),
  'GET /admin/scim-journal': listScimCalls,
  'GET /admin/statistics': showStatistics,
  'GET /admin/system': showSystem,
  'GET /admin/tokens': showTokenIssuers,
  ...workflowRoutes,
  ...approvalRoutes,
  ...targetRoutes,
  ...peopleRoutes,
  ...personChangeRoutes,
  ...groupRoutes,
}

/** The console's part of the API, for administrators. */
export async function answerConsole(parts: MainParts, exchange: Exchange, path: string): Promise<GatewayResponse> {
  const { subject } = exchange
  if (!(await isAdministrator(parts, subject))) {
    throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" is not an administrator of the portal`)
  }
  const response = await answerRoute(consoleRoutes, parts, exchange, path)
  return { ...response, headers: { ...response.headers, 'cache-control': 'no-store' } }
}
