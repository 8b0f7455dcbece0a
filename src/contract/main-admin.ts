import type * as schema from './schemas/main-admin.ts'
import type { Wire } from './wire.ts'

/** Below `admin` of the Main API, for administrators. Times are ISO 8601. */

/** A run that did not end within its call. */
export type AdminRun = Wire<typeof schema.adminRun>

/** GET admin/incidents and admin/runs?state=&name=&subject=&requestor=&limit=&after=. */
export type AdminRuns = Wire<typeof schema.adminRuns>

export type AdminStep = Wire<typeof schema.adminStep>

/** GET admin/runs/{id}. */
export type AdminRunDetails = Wire<typeof schema.adminRunDetails>

export type AdminAction = 'retry' | 'skip' | 'cancel'

/** POST admin/runs/{id}/{retry|skip|cancel}; answered by an AdminRun. `retry` needs no reason. */
export interface AdminIntervention {
  readonly fence: number
  readonly reason?: string
}

/** One call of a SCIM client, as its operator sees it. */
export type ScimCall = Wire<typeof schema.scimCall>

/** GET admin/scim-journal?gateway=&failed=&status=&since=&limit=&after=. */
export type ScimJournalPage = Wire<typeof schema.scimJournalPage>

export type RequestCounts = Wire<typeof schema.requestCounts>

export type ApprovalCounts = Wire<typeof schema.approvalCounts>

export type TokenCounts = Wire<typeof schema.tokenCounts>

export type ScimCallCounts = Wire<typeof schema.scimCallCounts>

export type StatisticsPart = Wire<typeof schema.statisticsPart>

/** GET admin/statistics?from=&to=&by=hour|day. */
export type Statistics = Wire<typeof schema.statistics>
