import type { FormAttributeView } from './form-attribute.ts'

/**
 * Paths of the Main API below its mount, which may end in `/main` or stand above it. Times are milliseconds since 1970
 * where the predecessor has them so (`wfStart`, `approvalStart`), ISO 8601 everywhere else.
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
  /** GET: access of one's own that ends by itself. */
  access: 'access',
  /** `admin/incidents`, `admin/runs`, `admin/runs/{id}`, `admin/runs/{id}/{retry|skip|cancel}`. */
  admin: 'admin',
  /** GET `admin/scim-journal`. */
  scimJournal: 'admin/scim-journal',
  /** GET `admin/statistics`. */
  statistics: 'admin/statistics',
} as const

/** By which callers go who did not log in, in lower case; nobody else has it. */
export const nobodysLogin = 'anonymous'

/** The body of every failure. */
export interface MainErrors {
  /** For people. */
  readonly errors: readonly string[]
  readonly code?: string
  readonly requestId?: string
}

/** GET config. */
export interface MainConfig {
  readonly displayNameAttribute: string
  readonly uidAttributeName: string
  readonly frontPage: { readonly title: string; readonly text: string }
  /** For the one who asks. */
  readonly canEditUser: boolean
  readonly showPortalOrgs: boolean
  readonly logoutURL: string
  readonly enableApprovals: boolean
  /** The fields of the profile that the one who asks may see, by name. */
  readonly attributes: Readonly<Record<string, FormAttributeView>>
  readonly roleAttribute?: string
  readonly warnMinutesLeft: number
  readonly requireReasons: boolean
  readonly reasonIsList: boolean
  readonly reasons: readonly string[]
  readonly startPage: string
  readonly hidePages: readonly string[]
  readonly themePrimaryMain: string
  readonly themePrimaryDark: string
  readonly themePrimaryLight: string
  readonly themeSecondaryMain: string
  readonly themeSecondaryDark: string
  readonly themeSecondaryLight: string
  readonly headerTitle: string
  readonly errorColor: string
  readonly groupsAreJson: boolean
  readonly groupsFields: readonly string[]
  /** The order of `attributes`. */
  readonly attributeNameList: readonly string[]
  /** Requests for people who do not exist make them. */
  readonly createsUnknownUsers: boolean
  /** The one who asks sees incidents and the SCIM journal. */
  readonly administrator: boolean
  /** Whether the one who asks finds people by `search`. */
  readonly canSearchPeople: boolean
}

export interface AttributeValues {
  readonly name: string
  readonly values: readonly string[]
  readonly dataType: 'string'
}

/** GET user, and the answer to PUT user. */
export interface UserData {
  readonly uid?: string
  readonly dn: string
  readonly attributes: readonly AttributeValues[]
  readonly groups: readonly string[]
}

/** PUT user: values by attribute. What is not there stays as it is; an empty text clears. */
export type ProfileChange = Readonly<Record<string, { readonly name?: string; readonly value: string }>>

/** GET orgs: the branches that the one who asks may see. Where several are at the top, the root has no id. */
export interface Organization {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly showInPortal: boolean
  readonly showInRequest: boolean
  readonly showInReports: boolean
  readonly subOrgs: readonly Organization[]
}

/** GET workflows/org/{orgId}: a list of these. */
export interface WorkflowListItem {
  /** Another one each time. A request with it is made once, however often it is sent. */
  readonly uuid: string
  readonly name: string
  readonly label: string
  readonly description: string
  /** Stands for the parameters of this row: opaque, the caller's own, and valid for a short time. */
  readonly encryptedParams?: string
  readonly filterAnnotations: Readonly<Record<string, string>>
  /** Where whoever asks for it chooses when the access ends. */
  readonly accessEnds?: {
    readonly required: boolean
    /** From the request on; absent where there is no limit. */
    readonly longestSeconds?: number
  }
}

/** GET workflows/candelegate. */
export interface DelegationRights {
  readonly canDelegate: boolean
  readonly canPreApprove: boolean
  readonly uuid?: string
}

/** PUT workflows: a list of these, answered by SubmitResults. */
export interface WorkflowRequest {
  readonly uuid: string
  readonly name: string
  readonly reason?: string
  readonly encryptedParams?: string
  /**
   * When the access is to end, where that can be chosen: an ISO 8601 time, or a date, which is good until the end of that
   * day in UTC. Empty or absent: for good.
   */
  readonly expires?: string
  /** Logins; for oneself when there is none. */
  readonly subjects?: readonly string[]
  readonly doPreApproval?: boolean
  /** Also as text. */
  readonly approved?: boolean | 'true' | 'false'
  readonly approvalReason?: string
}

/** By uuid: `success`, or what went wrong, for people. */
export type SubmitResults = Readonly<Record<string, string>>

/** PUT workflows?outcomes=true, by uuid: the same, and what became of the decision that came with it. */
export interface SubmitOutcome {
  readonly result: string
  /**
   * Only of a line with a decision that was submitted. `taken`: about everybody's first approval that there was; `left`:
   * at least one was not the requester's to decide, or is still to come, and waits for others; `none`: there was nothing
   * to decide.
   */
  readonly decision?: 'taken' | 'left' | 'none'
}

export type SubmitOutcomes = Readonly<Record<string, SubmitOutcome>>

/** GET urls and urls/org/{orgId}: a list of these. */
export interface PortalLink {
  readonly name: string
  readonly label: string
  readonly org: string
  readonly url: string
  /** A PNG in base64; empty where there is none. */
  readonly icon: string
}

/** GET search?q=&kind=workflow|url|person (may repeat; all that are allowed when absent). */
export interface SearchResults {
  readonly workflows: readonly {
    readonly name: string
    readonly label: string
    readonly description: string
    /** Empty for one of every org. */
    readonly org: string
  }[]
  readonly urls: readonly PortalLink[]
  readonly people: readonly { readonly uid: string; readonly displayName: string }[]
  /** There are more than are shown. */
  readonly more: boolean
}

export type MarkedKind = 'url' | 'workflow'

export interface MarkedItem {
  readonly kind: MarkedKind
  readonly name: string
  readonly label: string
  readonly at: string
}

/** GET favourites. Only what the caller may still see. */
export interface MarkedItems {
  readonly favourites: readonly MarkedItem[]
  /** Latest first. */
  readonly recent: readonly MarkedItem[]
}

/** POST recent: the caller has used this; answered with 204. */
export interface RecentUse {
  readonly kind: MarkedKind
  readonly name: string
}

/** GET access. */
export interface TimedAccess {
  readonly access: readonly {
    readonly id: string
    readonly target: string
    readonly kind: 'user' | 'group'
    readonly name: string
    readonly granted: string
    readonly expires: string
  }[]
}
