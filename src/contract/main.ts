import type * as schema from './schemas/main.ts'
import type { Wire } from './wire.ts'

/**
 * Paths of the Main API below its mount, which may end in `/main` or be its parent. `wfStart` and `approvalStart`
 * are milliseconds since 1970, as in OpenUnison; all other times are ISO 8601.
 */
export const mainPaths = {
  config: 'config',
  user: 'user',
  orgs: 'orgs',
  /** GET `workflows/org/{orgId}`, GET `workflows/candelegate?workflowName=&uuid=`, PUT `workflows`. */
  workflows: 'workflows',
  /** GET, PUT (several at once); `approvals/{id}`: GET, PUT. */
  approvals: 'approvals',
  /** GET; `urls/org/{orgId}`: GET. */
  urls: 'urls',
  /** `reports/org/{orgId}`, `reports/{name}` and exports. */
  reports: 'reports',
  /** GET; `requests/{id}`: GET; `requests/{id}/cancel`: POST. */
  requests: 'requests',
  /** GET, POST; `delegations/{id}`: DELETE. */
  delegations: 'delegations',
  /** GET `search?q=&kind=`. */
  search: 'search',
  /** GET; `favourites/{kind}/{name}`: PUT, DELETE. */
  favourites: 'favourites',
  /** POST. */
  recent: 'recent',
  /** GET: the caller's access that expires. */
  access: 'access',
  /** `admin/incidents`, `admin/runs`, `admin/runs/{id}`, `admin/runs/{id}/{retry|skip|cancel}`. */
  admin: 'admin',
  /** GET `admin/scim-journal`. */
  scimJournal: 'admin/scim-journal',
  /** GET `admin/statistics`. */
  statistics: 'admin/statistics',
  /** GET: the description of the API, as Swagger 2.0. */
  swagger: 'swagger.json',
  /** The same as OpenAPI 3.1. */
  openapi: 'openapi.json',
} as const

/** The login of callers who did not sign in, in lower case. It is reserved for them. */
export const nobodysLogin = 'anonymous'

/** The body of every failure. */
export type MainErrors = Wire<typeof schema.mainErrors>

/** GET config. */
export type MainConfig = Wire<typeof schema.mainConfig>

export type AttributeValues = Wire<typeof schema.attributeValues>

/** GET user, and the answer to PUT user. */
export type UserData = Wire<typeof schema.userData>

/** PUT user: values by attribute. Absent attributes keep their values; an empty text clears the attribute. */
export type ProfileChange = Readonly<Record<string, { readonly name?: string; readonly value: string }>>

/** GET orgs: the branches that the caller may see. If several are at the top, the root has no id. */
export type Organization = Wire<typeof schema.organization>

/** GET workflows/org/{orgId}: a list of these. */
export type WorkflowListItem = Wire<typeof schema.workflowListItem>

/** GET workflows/candelegate. */
export type DelegationRights = Wire<typeof schema.delegationRights>

/** PUT workflows: a list of these, answered by SubmitResults. */
export interface WorkflowRequest {
  readonly uuid: string
  readonly name: string
  readonly reason?: string
  readonly encryptedParams?: string
  /**
   * The expiry date, if the workflow lets the requester choose one: an ISO 8601 time, or a date, which includes
   * that whole day in UTC. Empty or absent: the access does not expire.
   */
  readonly expires?: string
  /** Logins; the caller if absent. */
  readonly subjects?: readonly string[]
  readonly doPreApproval?: boolean
  /** Also as text. */
  readonly approved?: boolean | 'true' | 'false'
  readonly approvalReason?: string
}

/** By uuid: `success`, or an error text for people. */
export type SubmitResults = Wire<typeof schema.submitResults>

/** PUT workflows?outcomes=true, by uuid: the same, and the result of the decision that came with it. */
export type SubmitOutcome = Wire<typeof schema.submitOutcome>

export type SubmitOutcomes = Wire<typeof schema.submitOutcomes>

/** GET urls and urls/org/{orgId}: a list of these. */
export type PortalLink = Wire<typeof schema.portalLink>

/** GET search?q=&kind=workflow|url|person. `kind` may repeat; absent means all allowed kinds. */
export type SearchResults = Wire<typeof schema.searchResults>

export type MarkedKind = Wire<typeof schema.markedKind>

export type MarkedItem = Wire<typeof schema.markedItem>

/** GET favourites. Only items that the caller may still see. */
export type MarkedItems = Wire<typeof schema.markedItems>

/** POST recent: the caller has used this; answered with 204. */
export interface RecentUse {
  readonly kind: MarkedKind
  readonly name: string
}

/** GET access. */
export type TimedAccess = Wire<typeof schema.timedAccess>

/** Below `reports` of the Main API. */

/** GET reports/org/{orgId}. */
export type ReportList = Wire<typeof schema.reportList>

/** The parameters that the caller has to fill in before running a report: days or times, and a login. */
export type ReportParameter = Wire<typeof schema.reportParameter>

export type ReportInfo = Wire<typeof schema.reportInfo>

/**
 * GET reports/{name}?beginDate=&endDate=&userKey=, with exactly the parameters that the report declares. Times are
 * milliseconds since 1970, or ISO 8601; a date in endDate includes that whole day (UTC). `&format=csv` and
 * `&format=xlsx` return a file instead, `&excel=true` a ReportReference.
 */
export type ReportResult = Wire<typeof schema.reportResult>

export type ReportGroup = Wire<typeof schema.reportGroup>

/** The file is at `reports/excel/{reportid}/{any file name}` for ten minutes, for this caller only. */
export type ReportReference = Wire<typeof schema.reportReference>

/** An item of a list that a person chooses from. */
export type ListItem = Wire<typeof schema.listItem>

/** How a field is shown: one line, several lines, one line with suggestions, a choice. */
export type FormAttributeType = Wire<typeof schema.formAttributeType>

/** One field of a form, as the registration page and the profile page get it. */
export type FormAttributeView = Wire<typeof schema.formAttributeView>
