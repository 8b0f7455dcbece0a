import type { Dn } from '#identity/dn.ts'
import type { PodEndpoint } from '#kernel/pod-endpoint.ts'
import type { SafePattern } from '#kernel/safe-pattern.ts'
import type { Schedule } from '#kernel/schedule.ts'
import type { TimeSpan } from '#kernel/time.ts'
import type { OrgSpec, PortalUrlSpec, ReportSpec } from '#model/portal.ts'
import type { StsEndpointSpec } from '#model/sts.ts'
import type { TrustSpec } from '#model/trust.ts'
import type { PreparedAuditSink } from '#sdk/audit/audit-sink.ts'
import type { PreparedMechanism } from '#sdk/auth/auth-mechanism.ts'
import type { PreparedAuthorization } from '#sdk/auth/authorization.ts'
import type { IssuerConfig } from '#sdk/auth/issuer.ts'
import type { Rule } from '#sdk/auth/rule.ts'
import type { PreparedInsert } from '#sdk/directory/directory-insert.ts'
import type { PreparedFilter } from '#sdk/filter/filter.ts'
import type { PreparedJob } from '#sdk/job/job.ts'
import type { PreparedMapping } from '#sdk/mapper/mapping.ts'
import type { PreparedNotifier } from '#sdk/notifier/notifier.ts'
import type { StsWebhookConfig } from '#sdk/sts/sts-webhook.ts'
import type { TokenEndpoint } from '#sdk/sts/token-endpoint.ts'
import type { TokenIssuer } from '#sdk/sts/token-keys.ts'
import type { PreparedTarget } from '#sdk/target/target-module.ts'
import type { AccessEndOffer } from '#sdk/workflow/access-end.ts'
import type { PreparedDynamicWorkflowSource } from '#sdk/workflow/dynamic-workflow.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'

/** Where an object stands, for people: `applications/scim.yaml:12:3`. */
export interface Placed {
  readonly name: string
  readonly namespace: string | undefined
  readonly at: string
}

/** Everything the YAML says, parsed, checked and ready to be created. Immutable. */
export interface Configuration {
  /** Changes when, and only when, the content does. */
  readonly hash: string
  readonly folder: string
  /** What `#[GATEHOUSE_URL]` stands for; absent where nothing says it. */
  readonly publicUrl?: string
  readonly applications: readonly ApplicationConfig[]
  readonly chains: ReadonlyMap<string, ChainConfig>
  readonly targets: ReadonlyMap<string, TargetConfig>
  /** The root of the virtual directory. */
  readonly directoryRoot: Dn
  /** In their order. Without any, every target with look-ups is a branch of its own. */
  readonly inserts: readonly InsertConfig[]
  readonly workflows: ReadonlyMap<string, WorkflowConfig>
  readonly resultGroups: ReadonlyMap<string, ResultGroupConfig>
  readonly authorizations: ReadonlyMap<string, AuthorizationConfig>
  readonly javaScriptMappings: ReadonlyMap<string, string>
  readonly trusts: ReadonlyMap<string, Described<TrustSpec>>
  readonly orgs: ReadonlyMap<string, Guarded<OrgSpec>>
  readonly portalUrls: ReadonlyMap<string, Guarded<PortalUrlSpec>>
  readonly reports: ReadonlyMap<string, Described<ReportSpec>>
  readonly jobs: ReadonlyMap<string, JobConfig>
  readonly notifiers: ReadonlyMap<string, NotifierConfig>
  /** What gets a copy of the audit. */
  readonly auditSinks: ReadonlyMap<string, AuditSinkConfig>
  /** Where the signed head of the audit is kept outside the database, beside the log. */
  readonly auditAnchors: ReadonlyMap<string, AuditAnchorConfig>
  readonly stsEndpoints: readonly StsEndpointConfig[]
  /** Undefined where API servers ask the injector at no listener of its own. */
  readonly stsWebhook?: StsWebhookConfig | undefined
  /** Our own OpenID Connect issuers. */
  readonly issuers: readonly IssuerConfig[]
  /** Reads a definition of an earlier configuration against this one. Pure, but for files that its tasks name. */
  restoreWorkflow(stored: StoredWorkflow): RestoredWorkflow
}

/** An object that is read and checked as it is written, for features that take it from here. */
export interface Described<S> extends Placed {
  readonly spec: S
}

/** One that is shown to whoever passes one of its rules; without any, to nobody. */
export interface Guarded<S> extends Described<S> {
  readonly rules: readonly Rule[]
}

export interface StsEndpointConfig {
  readonly at: string
  readonly spec: StsEndpointSpec
  readonly rules: readonly Rule[]
  readonly endpoint: TokenEndpoint
  readonly issuer: TokenIssuer
  /** The additional claims. */
  readonly claims: PreparedMapping
  /** Undefined where pods are not injected. */
  readonly pods: PodEndpoint | undefined
}

export interface ApplicationConfig extends Placed {
  /** How long an authorization decision is remembered per subject and URL. */
  readonly azTimeoutMillis: number
  readonly cookies: CookieConfig | undefined
  readonly urls: readonly UrlConfig[]
}

/** Only where the application keeps sessions. */
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

export interface UrlConfig {
  readonly at: string
  /** Lower case; `*` is every host. */
  readonly hosts: readonly string[]
  readonly uri: string
  /** Set where `regex: true`; the uri is then not a prefix. */
  readonly pattern: SafePattern | undefined
  /** Undefined for a URL that needs no login: the caller is anonymous, and rules still decide. */
  readonly chain: string | undefined
  readonly rules: readonly Rule[]
  readonly filters: readonly (PreparedFilter & { readonly at: string })[]
  readonly results: {
    readonly auSuccess: string | undefined
    readonly auFail: string | undefined
    readonly azSuccess: string | undefined
    readonly azFail: string | undefined
  }
}

/** From how many failed tries on an account is locked, and for how long each time. */
export interface LoginLimits {
  readonly maxFailedAttempts: number
  readonly lockoutMillis: number
}

export interface ChainConfig extends Placed {
  readonly level: number
  readonly root: string | undefined
  readonly finishOnRequiredSuccess: boolean
  /** Absent where the chain sets none of its own. */
  readonly limits?: LoginLimits | undefined
  readonly mechanisms: readonly {
    readonly name: string
    /** Where the mechanism's own requests come in. */
    readonly uri?: string
    readonly required: boolean
    readonly at: string
    readonly mechanism: PreparedMechanism
  }[]
}

export interface TargetConfig extends Placed {
  readonly target: PreparedTarget
  /** `targetAttributes`: what is written under which name; undefined when everything passes unmapped. */
  readonly mapping: PreparedMapping | undefined
}

export interface InsertConfig extends Placed {
  readonly insert: PreparedInsert
  readonly suffix: Dn
  readonly order: number
  /** Names of attributes in the directory, and what the insert's system calls them; one to one. */
  readonly mapping: ReadonlyMap<string, string>
}

export interface WorkflowConfig extends Placed {
  readonly label: string
  readonly description: string
  readonly inList: boolean
  readonly orgId: string | undefined
  /** Present where it stands for one row per set of parameters. */
  readonly dynamic?: {
    readonly source: PreparedDynamicWorkflowSource
    readonly annotations: readonly { readonly name: string; readonly parameter: string }[]
  }
  /** Present where whoever asks for it chooses when the access ends. */
  readonly accessEnds?: AccessEndOffer
  /** How long a run may take; for as long as it likes when absent. */
  readonly deadline?: TimeSpan
  /** Of the definition as it was read, so that a run can be pinned to it. */
  readonly hash: string
  readonly tasks: readonly PreparedTask[]
  /** Request parameters that it declares, and those that its tasks use as `$name$`. */
  readonly parameters: readonly string[]
  /** The definition as text, from which it can be read again when the configuration has another by then. */
  readonly source: string
}

/** A definition that a run was started with. */
export interface StoredWorkflow {
  readonly name: string
  readonly hash: string
  readonly source: string
}

/** `problems` where it cannot be read any more, such as when it names a target that is gone. */
export type RestoredWorkflow = { readonly config: WorkflowConfig } | { readonly problems: readonly string[] }

export interface NotifierConfig extends Placed {
  readonly notifier: PreparedNotifier
}

export interface AuditSinkConfig extends Placed {
  readonly sink: PreparedAuditSink
  /** What a new sink begins with: the whole audit, or what is written from now on. */
  readonly start: 'beginning' | 'now'
}

export const defaultAnchorMillis = 5 * 60_000

export interface AuditAnchorConfig extends Placed {
  readonly sink: PreparedAuditSink
  readonly intervalMillis: number
}

export interface AuthorizationConfig extends Placed {
  readonly authorization: PreparedAuthorization
}

export interface JobConfig extends Placed {
  readonly group: string | undefined
  readonly schedule: Schedule
  /** How long one run may take. */
  readonly timeoutMillis: number
  readonly job: PreparedJob
}

export interface ResultGroupConfig extends Placed {
  readonly results: readonly {
    readonly type: 'header' | 'cookie' | 'redirect'
    readonly source: 'static' | 'user'
    /** For header and cookie `name=value`; for redirect the address. */
    readonly value: string
  }[]
}
