import type { RequestState } from './main-requests.ts'

/** Below `admin` of the Main API, for administrators. Times are ISO 8601. */

/** A run that outlived its call. */
export interface AdminRun {
  readonly id: string
  /** The workflow. */
  readonly name: string
  readonly state: RequestState
  readonly subject: string
  readonly requestor: string
  readonly caller?: string
  readonly reason?: string
  readonly requestId?: string
  readonly attempt: number
  /** An intervention names the one it was decided on. */
  readonly fence: number
  readonly worker?: string
  readonly due: string
  readonly deadline?: string
  readonly incident?: { readonly task: string; readonly code: string; readonly message: string }
  readonly cancel?: { readonly by: string; readonly reason?: string }
  /** A target was changed. */
  readonly touched: boolean
  readonly created: string
  readonly updated: string
  readonly ended?: string
}

/** GET admin/incidents and admin/runs?state=&name=&subject=&requestor=&limit=&after=. */
export interface AdminRuns {
  /** Latest first. */
  readonly runs: readonly AdminRun[]
  readonly next?: string
}

export interface AdminStep {
  readonly id: number
  readonly number: number
  readonly attempt: number
  readonly task: string
  readonly taskType: string
  readonly label?: string
  readonly started: string
  readonly ended: string
  readonly outcome: string
  readonly error?: string
}

/** GET admin/runs/{id}. */
export interface AdminRunDetails extends AdminRun {
  readonly timeline: readonly AdminStep[]
}

export type AdminAction = 'retry' | 'skip' | 'cancel'

/** POST admin/runs/{id}/{retry|skip|cancel}; answered by an AdminRun. `retry` needs no reason. */
export interface AdminIntervention {
  readonly fence: number
  readonly reason?: string
}

/** One call of a SCIM client, as its operator sees it. */
export interface ScimCall {
  readonly id: number
  /** The Application of the gateway. */
  readonly gateway: string
  readonly time: string
  readonly requestId: string
  readonly caller: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly scimType?: string
  readonly error?: string
  readonly millis: number
  readonly workflows: readonly string[]
  readonly operations?: unknown
}

/** GET admin/scim-journal?gateway=&failed=&status=&since=&limit=&after=. */
export interface ScimJournalPage {
  /** Latest first. */
  readonly entries: readonly ScimCall[]
  readonly next?: string
}

export type RequestCounts = Readonly<Record<RequestState, number>>

export interface ApprovalCounts {
  readonly opened: number
  /** Of those opened, how many went to others since, because nobody decided. */
  readonly escalated: number
  readonly approved: number
  readonly denied: number
  /** How long those that were approved or denied had been open: the median. */
  readonly decisionMillis?: number
}

export interface TokenCounts {
  readonly issued: number
  readonly refused: number
}

export interface ScimCallCounts {
  /** With a status below 400. */
  readonly answered: number
  /** From 400 to 499. */
  readonly refused: number
  /** From 500 on. */
  readonly failed: number
}

export interface StatisticsPart {
  /** When it begins; it ends with the next one. */
  readonly from: string
  /** By the time they began, with the state that they are in now. */
  readonly requests: RequestCounts
  readonly approvals: ApprovalCounts
  /** By the token service, and by the gateway's own OpenID Connect issuers. */
  readonly tokens: { readonly sts: TokenCounts; readonly issuers: TokenCounts }
  readonly scim: ScimCallCounts
}

/** GET admin/statistics?from=&to=&by=hour|day. */
export interface Statistics {
  readonly from: string
  readonly to: string
  readonly by: 'hour' | 'day'
  /** One for each hour or 24 hours since `from`, oldest first; the last one is cut off by `to`. */
  readonly parts: readonly StatisticsPart[]
  /** The median of the whole time; absent where nothing was decided. */
  readonly decisionMillis?: number
  /** Those with most first, at most 10. */
  readonly workflows: readonly { readonly name: string; readonly requests: RequestCounts }[]
  readonly scimClients: readonly { readonly gateway: string; readonly client: string; readonly calls: ScimCallCounts }[]
}
