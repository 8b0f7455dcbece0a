import { isAdministrator, type MainParts, requireOperator } from '#features/portal/front/main-parts.ts'
import { runOperations } from '#features/portal/runs/run-administration.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import { linkOperations } from './account-links.ts'
import { approvalOperations } from './approvals.ts'
import { auditOperations } from './audit.ts'
import { configurationOperations } from './configuration.ts'
import { groupOperations } from './groups.ts'
import { peopleOperations } from './people.ts'
import { personChangeOperations } from './person-changes.ts'
import { planOperations } from './plan-changes.ts'
import { reconciliationOperations } from './reconciliations.ts'
import { scimOperations } from './scim.ts'
import { tenantOperations } from './scim-tenants.ts'
import { statisticsOperations } from './statistics.ts'
import { systemOperations } from './system.ts'
import { systemOfPersonOperations } from './systems-of-person.ts'
import { targetOperations } from './targets.ts'
import { tokenOperations } from './tokens.ts'
import { workflowOperations } from './workflows.ts'

/** The console's part of the API. An operation that changes something calls `requireOperator`. */
export const consoleOperations = {
  ...runOperations<MainParts>(requireOperator),
  ...statisticsOperations,
  ...workflowOperations,
  ...approvalOperations,
  ...targetOperations,
  ...auditOperations,
  ...configurationOperations,
  ...scimOperations,
  ...tenantOperations,
  ...systemOperations,
  ...tokenOperations,
  ...peopleOperations,
  ...personChangeOperations,
  ...groupOperations,
  ...reconciliationOperations,
  ...planOperations,
  ...linkOperations,
  ...systemOfPersonOperations,
} satisfies OperationTable<MainParts>

/** Throws ACCESS_DENIED for others than administrators of the portal. */
export async function requireAdministrator(parts: MainParts, subject: Subject): Promise<void> {
  if (await isAdministrator(parts, subject)) return
  throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" is not an administrator of the portal`)
}
