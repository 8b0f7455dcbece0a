import type { ConfigDocument } from '#config/config-document.ts'
import type { Path } from '#kernel/issues.ts'
import type { OrgSpec } from '#model/org.ts'
import type { PortalUrlSpec } from '#model/portal-url.ts'
import type { ReportSpec } from '#model/report.ts'
import type { TrustSpec } from '#model/trust.ts'
import type { AuthMechanismModule } from '#sdk/auth/auth-mechanism.ts'
import type { IssuerConfig, IssuerTrust } from '#sdk/auth/issuer.ts'
import type {
  ApplicationConfig,
  AuditAnchorConfig,
  AuditSinkConfig,
  AuthorizationConfig,
  ChainConfig,
  Described,
  Guarded,
  InsertConfig,
  JobConfig,
  NotifierConfig,
  ResultGroupConfig,
  StsEndpointConfig,
  TargetConfig,
  WorkflowConfig,
} from '#sdk/module/configuration.ts'
import type { Params } from '#sdk/module/params.ts'
import type { StsWebhookConfig } from '#sdk/sts/sts-webhook.ts'
import type { AttributeFlow, CallableWorkflows } from '#sdk/workflow/flow.ts'

/** A trust before its issuer, and so its default chain, is known. */
export type DraftTrust = Omit<IssuerTrust, 'chain'> & { readonly chain: string | undefined }

/** Something that was built, with the document it came from. */
export interface Built<T> {
  readonly config: T
  readonly document: ConfigDocument
}

export interface DraftWorkflow extends Built<WorkflowConfig> {
  /** Where a task first reads the end of access that a requester chose. */
  readonly readsEndAt: Path | undefined
  /** It names that end among its parameters, so that callers pass it. */
  readonly declaresEnd: boolean
}

export interface Mechanism {
  readonly module: AuthMechanismModule
  readonly init: Params
  readonly uri: string
}

/** A gateway's attributes, as the data-flow check wants them. */
export interface Gateway {
  readonly application: string
  readonly document: ConfigDocument
  readonly path: Path
  readonly flow: AttributeFlow
}

/** A URL whose callers start workflows. */
export interface CallableUrl {
  readonly document: ConfigDocument
  readonly chain: string | undefined
  readonly callable: CallableWorkflows
}

/** A URL as the checks across objects want it. */
export interface UrlClaim {
  readonly document: ConfigDocument
  readonly path: Path
  readonly hosts: readonly string[]
  readonly uri: string
  readonly regex: boolean
}

/** What the objects of one load came to, while it goes on. */
export class Draft {
  readonly applications: Built<ApplicationConfig>[] = []
  /** Undefined for one whose class is not known, so that its chains are not blamed. */
  readonly mechanisms = new Map<string, Mechanism | undefined>()
  readonly chains = new Map<string, Built<ChainConfig>>()
  readonly targets = new Map<string, Built<TargetConfig>>()
  readonly inserts: Built<InsertConfig>[] = []
  readonly workflows = new Map<string, DraftWorkflow>()
  readonly resultGroups = new Map<string, ResultGroupConfig>()
  readonly authorizations = new Map<string, AuthorizationConfig>()
  readonly javaScriptMappings = new Map<string, string>()
  readonly trusts = new Map<
    string,
    Described<TrustSpec> & { readonly trust: DraftTrust; readonly document: ConfigDocument }
  >()
  readonly orgs = new Map<string, Built<Guarded<OrgSpec>>>()
  readonly portalUrls = new Map<string, Guarded<PortalUrlSpec>>()
  readonly reports = new Map<string, Described<ReportSpec>>()
  readonly jobs = new Map<string, JobConfig>()
  readonly notifiers = new Map<string, NotifierConfig>()
  readonly auditSinks = new Map<string, AuditSinkConfig>()
  readonly auditAnchors = new Map<string, AuditAnchorConfig>()
  readonly stsEndpoints: StsEndpointConfig[] = []
  stsWebhook: StsWebhookConfig | undefined
  readonly issuers: IssuerConfig[] = []
  readonly gateways: Gateway[] = []
  readonly callables: CallableUrl[] = []
  readonly claims: UrlClaim[] = []
}
