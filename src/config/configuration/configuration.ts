import type { OrgSpec, PortalUrlSpec, ReportSpec } from '#config/kinds/portal.ts'
import type { StsEndpointSpec } from '#config/kinds/sts.ts'
import type { TrustSpec } from '#config/kinds/trust.ts'
import type { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Schedule } from '#kernel/schedule.ts'
import type { SafePattern } from '#kernel/text/safe-pattern.ts'
import type { TimeSpan } from '#kernel/time.ts'
import type { PodEndpoint } from '#protocols/admission/pod-endpoint.ts'
import type { PreparedAuditSink } from '#sdk/audit/audit-sink.ts'
import type { PreparedMechanism } from '#sdk/auth/auth-mechanism.ts'
import type { PreparedAuthorization } from '#sdk/auth/authorization.ts'
import type { PreparedInsert } from '#sdk/directory/directory-insert.ts'
import type { PreparedFilter } from '#sdk/filter/filter.ts'
import type { ErrorFormat } from '#sdk/http/error-format.ts'
import type { PreparedJob } from '#sdk/job/job.ts'
import type { PreparedMapping } from '#sdk/mapper/mapping.ts'
import type { PreparedNotifier } from '#sdk/notifier/notifier.ts'
import type { ConfiguredTexts } from '#sdk/page/configured-texts.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import type { GroupMapping, GroupSource } from '#sdk/target/group-mappings.ts'
import type { PreparedTarget } from '#sdk/target-module/target-module.ts'
import type { PreparedDynamicWorkflowSource } from '#sdk/workflow/dynamic-workflow.ts'
import type { ExpiryOffer } from '#sdk/workflow/expiry-offer.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'
import type { IssuerConfig } from './issuer.ts'
import type { StsWebhookConfig } from './sts-webhook.ts'
import type { TokenEndpoint } from './token-endpoint.ts'
import type { TokenIssuer } from './token-keys.ts'

/** The place of an object, for people: `applications/scim.yaml:12:3`. */
export interface Placed {
  readonly name: string
  readonly namespace: string | undefined
  readonly at: string
}

/** The whole configuration, parsed, checked and ready to be created. Immutable. */
export interface Configuration {
  /** Changes when, and only when, the content does. */
  readonly hash: string
  readonly folder: string
  /** The value of `#[GATEHOUSE_URL]`; absent if nothing sets it. */
  readonly publicUrl?: string | undefined
  readonly applications: readonly ApplicationConfig[]
  readonly chains: ReadonlyMap<string, ChainConfig>
  readonly targets: ReadonlyMap<string, TargetConfig>
  /**
   * Targets that are never a branch of the directory: those with `inDirectory: false`, and those of resource types, even of
   * types that are set aside, since what they store are neither users nor groups.
   */
  readonly outsideDirectory?: ReadonlySet<string>
  /** The root of the virtual directory. */
  readonly directoryRoot: Dn
  /** In order. Without any, every target with lookups is a separate branch. */
  readonly inserts: readonly InsertConfig[]
  readonly workflows: ReadonlyMap<string, WorkflowConfig>
  readonly resultGroups: ReadonlyMap<string, ResultGroupConfig>
  readonly authorizations: ReadonlyMap<string, AuthorizationConfig>
  /** The texts of JavaScript and JavaScriptMapping objects. */
  readonly javaScripts: ReadonlyMap<string, string>
  /** Of GroupMetaData objects, and the clusters that have more of them. */
  readonly groupMappings?: { readonly mappings: readonly GroupMapping[]; readonly sources: readonly GroupSource[] }
  readonly trusts: ReadonlyMap<string, Described<TrustSpec>>
  readonly orgs: ReadonlyMap<string, Guarded<OrgSpec>>
  readonly portalUrls: ReadonlyMap<string, Guarded<PortalUrlSpec>>
  readonly reports: ReadonlyMap<string, Described<ReportSpec>>
  readonly jobs: ReadonlyMap<string, JobConfig>
  readonly notifiers: ReadonlyMap<string, NotifierConfig>
  /** The receivers of a copy of the audit. */
  readonly auditSinks: ReadonlyMap<string, AuditSinkConfig>
  /** Where the signed head of the audit is stored outside the database, besides the log. */
  readonly auditAnchors: ReadonlyMap<string, AuditAnchorConfig>
  readonly reconciliations: ReadonlyMap<string, ReconciliationConfig>
  readonly stsEndpoints: readonly StsEndpointConfig[]
  /** Undefined if the injector has no separate listener. */
  readonly stsWebhook?: StsWebhookConfig | undefined
  /** Our own OpenID Connect issuers. */
  readonly issuers: readonly IssuerConfig[]
  /** Objects with errors, and what depends on them: they are in none of the lists above. */
  readonly setAside?: readonly SetAsideObject[]
  /** Labels, descriptions and other texts for users, in other languages than the one they are written in. */
  readonly texts?: ConfiguredTexts
  /** Reads a definition of an earlier configuration with this one. Pure, except for files that its tasks name. */
  restoreWorkflow(stored: StoredWorkflow): RestoredWorkflow
}

/** An object that is not served. */
export interface SetAsideObject {
  readonly kind: string
  readonly name: string
  /** For operators; it may name other objects and places. */
  readonly reason: string
  /** For a target: whether it has lookups; undefined if that isn't known. */
  readonly lookups?: boolean | undefined
}

/** An object that is read and checked unchanged, for features that use it. */
export interface Described<S> extends Placed {
  readonly spec: S
}

/** One that users see who pass one of its rules; without any, no one does. */
export interface Guarded<S> extends Described<S> {
  readonly rules: readonly Rule[]
}

/** An endpoint of the token service. */
export interface StsEndpointConfig {
  readonly at: string
  readonly spec: StsEndpointSpec
  readonly rules: readonly Rule[]
  readonly endpoint: TokenEndpoint
  readonly issuer: TokenIssuer
  /** The additional claims. */
  readonly claims: PreparedMapping
  /** Undefined if pods are not injected. */
  readonly pods: PodEndpoint | undefined
}

/** Why an application is set aside. */
export interface ClosedReason {
  /** For operators. */
  readonly reason: string
  /** Something could not be created that another attempt may create. */
  readonly mayPass: boolean
}

/** An application with its URLs. */
export interface ApplicationConfig extends Placed {
  /** Why it is set aside. Its URLs then have no rules and filters, and every request to them fails. */
  readonly setAside?: ClosedReason
  /** How long an authorization decision is cached per subject and URL. */
  readonly azTimeoutMillis: number
  readonly cookies: CookieConfig | undefined
  readonly urls: readonly UrlConfig[]
}

/** Only if the application keeps sessions. */
export interface CookieConfig {
  readonly name: string
  /** Undefined binds the cookie to the host that set it. */
  readonly domain: string | undefined
  readonly secure: boolean
  readonly httpOnly: boolean
  readonly sameSite: 'Lax' | 'Strict' | 'None'
  readonly idleSeconds: number
  readonly logoutUri: string | undefined
}

/** A URL of an application, with its rules, results and filters. */
export interface UrlConfig {
  readonly at: string
  /** Lower case; `*` is every host. */
  readonly hosts: readonly string[]
  readonly uri: string
  /** Set with `regex: true`; the URI is then not a prefix. */
  readonly pattern: SafePattern | undefined
  /** Undefined for a URL that needs no login: the caller is anonymous, and rules still decide. */
  readonly chain: string | undefined
  readonly rules: readonly Rule[]
  readonly filters: readonly (PreparedFilter & { readonly at: string })[]
  /** For a URL without filters, because it is set aside: the error format of the API that it would be. */
  readonly errors?: ErrorFormat | undefined
  readonly results: {
    readonly auSuccess: string | undefined
    readonly auFail: string | undefined
    readonly azSuccess: string | undefined
    readonly azFail: string | undefined
  }
}

/** After how many failed tries an account is locked, and for how long each time. */
export interface LoginLimits {
  readonly maxFailedAttempts: number
  readonly lockoutMillis: number
}

/** An authentication chain with its mechanisms. */
export interface ChainConfig extends Placed {
  readonly level: number
  readonly root: string | undefined
  readonly finishOnRequiredSuccess: boolean
  /** Absent if the chain sets none of its own. */
  readonly limits?: LoginLimits | undefined
  readonly mechanisms: readonly {
    readonly name: string
    /** The path of the mechanism's own requests. */
    readonly uri?: string
    readonly required: boolean
    readonly at: string
    readonly mechanism: PreparedMechanism
  }[]
}

/** A target with the mapping of its attributes. */
export interface TargetConfig extends Placed {
  readonly target: PreparedTarget
  /** `targetAttributes`: what is written under which name; undefined if everything passes unmapped. */
  readonly mapping: PreparedMapping | undefined
}

/** A directory insert with its suffix. */
export interface InsertConfig extends Placed {
  readonly insert: PreparedInsert
  readonly suffix: Dn
  readonly order: number
  /** Attribute names of the directory, and their names in the insert's system; one to one. */
  readonly mapping: ReadonlyMap<string, string>
}

/** A workflow with its tasks. */
export interface WorkflowConfig extends Placed {
  readonly label: string
  /** What the label of a run says besides, with places such as `$name$` for its parameters. */
  readonly runDetails?: string
  readonly description: string
  readonly inList: boolean
  readonly orgId: string | undefined
  /** Who answers questions about it. */
  readonly owner?: string
  /** Present if it has one row per set of parameters. */
  readonly dynamic?: {
    readonly source: PreparedDynamicWorkflowSource
    readonly annotations: readonly { readonly name: string; readonly parameter: string }[]
  }
  /** Present if the requester chooses the expiry date. */
  readonly accessEnds?: ExpiryOffer
  /** The maximum duration of a run; unlimited if absent. */
  readonly deadline?: TimeSpan
  /** The hash of the definition, to which runs are pinned. */
  readonly hash: string
  readonly tasks: readonly PreparedTask[]
  /** Request parameters that it declares, and those that its tasks use as `$name$`. */
  readonly parameters: readonly string[]
  /** The definition as text, from which it can be read again after the configuration has changed. */
  readonly source: string
}

/** The definition of a stored run. */
export interface StoredWorkflow {
  readonly name: string
  readonly hash: string
  readonly source: string
}

/** `problems` if it can't be read any more, for example because it names a target that is gone. */
export type RestoredWorkflow = { readonly config: WorkflowConfig } | { readonly problems: readonly string[] }

/** A notifier. */
export interface NotifierConfig extends Placed {
  readonly notifier: PreparedNotifier
}

/** An audit sink. */
export interface AuditSinkConfig extends Placed {
  readonly sink: PreparedAuditSink
  /** What a new sink begins with: the whole audit, or what is written from now on. */
  readonly start: 'beginning' | 'now'
}

/** How often an anchor is written if its configuration does not say. */
export const defaultAnchorMillis = 5 * 60_000

/** A sink that regularly gets the heads of the audit chains. */
export interface AuditAnchorConfig extends Placed {
  readonly sink: PreparedAuditSink
  readonly intervalMillis: number
}

/** A custom authorization. */
export interface AuthorizationConfig extends Placed {
  readonly authorization: PreparedAuthorization
}

/** A job with its schedule. */
export interface JobConfig extends Placed {
  readonly group: string | undefined
  readonly schedule: Schedule
  /** The maximum duration of one run. */
  readonly timeoutMillis: number
  readonly job: PreparedJob
}

/** Headers, cookies or a redirect for allowed or denied requests. */
export interface ResultGroupConfig extends Placed {
  readonly results: readonly {
    readonly type: 'header' | 'cookie' | 'redirect'
    readonly source: 'static' | 'user'
    /** For header and cookie `name=value`; for redirect the URL. */
    readonly value: string
  }[]
}

/** Where the people are that should have an account. */
export type ReconciliationSource = {
  /** Only those that match. */
  readonly filter: Filter | undefined
  /** Only members of one of them; everyone if empty. */
  readonly groups: readonly string[]
} & (
  | { readonly kind: 'target'; readonly name: string }
  | { readonly kind: 'directory'; readonly base: Dn; readonly login: string }
)

/** How accounts of people are found that no stored link names. */
export type CorrelationRule =
  | { readonly kind: 'login' }
  /** The account has the id of the person in this attribute. */
  | { readonly kind: 'id'; readonly target: string }
  /** The account has a value of the person's attribute. */
  | { readonly kind: 'attribute'; readonly source: string; readonly target: string }

/** A comparison of the people of a source with the accounts of a target, and what follows from it. */
export interface ReconciliationConfig extends Placed {
  /** A hash of all that decides what its plans find and do. */
  readonly definition: string
  readonly description: string
  readonly source: ReconciliationSource
  readonly target: string
  /** The accounts that may be touched: those that match, and are in one of the groups if there are any. */
  readonly scope: { readonly filter: Filter | undefined; readonly groups: readonly string[] }
  /** What a person becomes for the workflows; unchanged if undefined. `targetAttributes` of the target come after it. */
  readonly mapping: PreparedMapping | undefined
  /** The memberships that are compared. */
  readonly groups: readonly string[] | 'all'
  /** In order. */
  readonly correlation: readonly CorrelationRule[]
  readonly missing: 'report' | 'create'
  readonly different: 'report' | 'change'
  readonly extra: 'report' | 'deactivate' | 'delete' | 'removeMemberships'
  readonly ambiguous: 'report'
  /** Which accounts are deactivated; undefined: by the usual attributes. */
  readonly deactivated: Filter | undefined
  /** By action: the workflow that does it. Has one for each action that the four decisions above name. */
  readonly workflows: Readonly<Partial<Record<ReconciliationWork, string>>>
  /** Deactivations, deletions and removals of all memberships together: the lower one of these counts. */
  readonly limits: ReconciliationLimits
  readonly schedule: Schedule | undefined
  readonly apply: 'manual' | 'automatic'
  /** People of the source are compared soon after each change of them. */
  readonly incremental: boolean
}

export interface ReconciliationLimits {
  /** Of the accounts in scope, rounded up. */
  readonly percent: number
  readonly accounts: number
}

/** What a workflow does for a reconciliation. */
export type ReconciliationWork = 'create' | 'change' | 'deactivate' | 'delete' | 'removeMemberships'
