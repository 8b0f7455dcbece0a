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
  ReconciliationConfig,
  ResultGroupConfig,
  StsEndpointConfig,
  TargetConfig,
  UrlConfig,
  WorkflowConfig,
} from '#config/configuration/configuration.ts'
import type { IssuerConfig, IssuerTrust } from '#config/configuration/issuer.ts'
import type { StsWebhookConfig } from '#config/configuration/sts-webhook.ts'
import type { OrgSpec, PortalUrlSpec, ReportSpec } from '#config/kinds/portal.ts'
import type { TrustSpec } from '#config/kinds/trust.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { AuthMechanismModule } from '#sdk/auth/auth-mechanism.ts'
import type { AttributeFlow, CallableWorkflows } from '#sdk/flow/flow.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ReferenceKind } from '#sdk/module/parse-context.ts'
import type { ResourceType } from '#sdk/module/resource-type.ts'
import type { GroupMapping, GroupSource } from '#sdk/target/group-mappings.ts'
import type { ConfigDocument, PartPlace, Place } from './config-document.ts'

/** A trust before its issuer, and so its default chain, is known. */
export type DraftTrust = Omit<IssuerTrust, 'chain'> & { readonly chain: string | undefined }

/** Something that was built, with the document it came from. */
interface Built<T> {
  readonly config: T
  readonly document: ConfigDocument
}

interface DraftWorkflow extends Built<WorkflowConfig> {
  /** Where a task first reads the expiry date that a requester chose. */
  readonly readsEndAt: Path | undefined
  /** It has the expiry date among its parameters, so that callers pass it. */
  readonly declaresEnd: boolean
}

interface Mechanism {
  readonly module: AuthMechanismModule
  readonly init: Params
  readonly uri: string
}

/** A gateway's attributes, for the data-flow check. */
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

/** A URL, for checks across objects. */
export interface UrlClaim {
  readonly document: ConfigDocument
  readonly path: Path
  readonly hosts: readonly string[]
  readonly uri: string
  readonly regex: boolean
  /** The part of the document that has it, if only that is set aside for an error here. */
  readonly part?: PartPlace | undefined
}

/** An endpoint of the token service. It is set aside alone. */
interface DraftEndpoint {
  readonly place: PartPlace
  readonly name: string | undefined
  /** Undefined if it can't be read. */
  readonly config: StsEndpointConfig | undefined
  readonly urls: readonly UrlConfig[]
}

interface DraftIssuer extends Built<IssuerConfig> {
  /** Its URL has a chain, which is then that of devices. */
  readonly hasChain: boolean
}

/** Two objects that claim the same name or address. It is not clear which of them is meant, so neither is served. */
export interface Rivals {
  readonly first: Place
  /** The one that has the error. */
  readonly later: Place
}

/** A JavaScript or JavaScriptMapping. */
export interface JavaScriptObject {
  readonly kind: 'JavaScript' | 'JavaScriptMapping'
  readonly text: string
  /** Objects whose text comes before it. */
  readonly includes: readonly string[]
}

/** The objects of one load so far. */
export class Draft {
  readonly applications: Built<ApplicationConfig>[] = []
  /** Undefined for an unknown class, so that its chains get no further issues. */
  readonly mechanisms = new Map<string, Mechanism | undefined>()
  readonly chains = new Map<string, Built<ChainConfig>>()
  readonly targets = new Map<string, Built<TargetConfig>>()
  readonly inserts: Built<InsertConfig>[] = []
  readonly workflows = new Map<string, DraftWorkflow>()
  readonly resourceTypes = new Map<string, Built<ResourceType>>()
  /** The targets that store resources of other types than users and groups, with the object that names each first. */
  readonly resourceTargets = new Map<string, ConfigDocument>()
  /** The targets with `inDirectory: false`. */
  readonly outsideDirectory = new Set<string>()
  readonly resultGroups = new Map<string, ResultGroupConfig & { readonly document: ConfigDocument }>()
  readonly authorizations = new Map<string, AuthorizationConfig>()
  readonly javaScripts = new Map<string, JavaScriptObject>()
  readonly groupMappings: Built<readonly GroupMapping[]>[] = []
  readonly groupSources: Built<GroupSource>[] = []
  /** Names of groups in rules and mappings. */
  readonly groupNames: (Built<string> & { readonly path: Path })[] = []
  readonly trusts = new Map<
    string,
    Described<TrustSpec> & { readonly trust: DraftTrust; readonly document: ConfigDocument }
  >()
  readonly orgs = new Map<string, Built<Guarded<OrgSpec>>>()
  readonly portalUrls = new Map<string, Guarded<PortalUrlSpec>>()
  readonly reports = new Map<string, Built<Described<ReportSpec>>>()
  readonly jobs = new Map<string, JobConfig>()
  readonly notifiers = new Map<string, NotifierConfig>()
  readonly auditSinks = new Map<string, AuditSinkConfig>()
  readonly auditAnchors = new Map<string, AuditAnchorConfig>()
  readonly reconciliations = new Map<string, ReconciliationConfig>()
  /** The values documents with a token service: one, unless there is an error. */
  readonly stsDocuments: ConfigDocument[] = []
  readonly stsEndpoints: DraftEndpoint[] = []
  stsWebhook: StsWebhookConfig | undefined
  readonly issuers: DraftIssuer[] = []
  readonly gateways: Gateway[] = []
  readonly callables: CallableUrl[] = []
  readonly claims: UrlClaim[] = []
  readonly rivals: Rivals[] = []
}

/** One place that refers to another object. */
export interface Reference {
  readonly kind: ReferenceKind
  readonly name: string
  readonly path: Path
  readonly document: ConfigDocument
  readonly absent: 'error' | 'warning'
}

/** Names that exist. */
type KnownNames = (kind: ReferenceKind) => ReadonlySet<string>

export function missingReferences(references: readonly Reference[], known: KnownNames): Reference[] {
  const names = new Map<ReferenceKind, ReadonlySet<string>>()
  return references.filter(({ kind, name }) => {
    const there = names.get(kind) ?? known(kind)
    names.set(kind, there)
    return !there.has(name)
  })
}

/** Their names are made of two, or are alike: the uuids of orgs often differ in their last part only. */
const unsuggested: ReadonlySet<ReferenceKind> = new Set([
  'org',
  'trust of an identity provider',
  'endpoint of the token service',
])

/** Files an issue for every reference to nothing. */
export function checkReferences(references: readonly Reference[], known: KnownNames, issues: Issues): void {
  for (const { kind, name, path, document, absent } of missingReferences(references, known)) {
    const hint = unsuggested.has(kind) ? '' : suggestion(name, known(kind))
    const message = `${absence(kind, name)}${hint}`
    if (absent === 'error') issues.for(document).error(path, message)
    else issues.for(document).warning(path, message)
  }
}

/** The beginning of the message for a reference to nothing. */
export function absence(kind: ReferenceKind, name: string): string {
  if (kind === 'key')
    return `no key "${name}": no keys/${name}.pem, .crt or .key in the configuration folder, no secret ${name} with a tls.crt`
  if (kind === 'notifier' && name === '')
    return 'no Notifier is the default one, so its mails stay queued: configure one, or call one of several "default"'
  if (kind === 'org') return `no org with the uuid "${name}"`
  if (kind === 'trust of an identity provider') {
    const space = name.indexOf(' ')
    return `the identity provider "${name.slice(0, space)}" has no trust "${name.slice(space + 1)}"`
  }
  if (kind === 'password page') {
    return 'its link needs a URL with filters.Passwords, where users set the password: add one, or, of several, name the Application of one'
  }
  if (kind === 'endpoint of the token service') {
    const [issuer = '', audience = ''] = name.split(' ')
    const missing = `the token service has no endpoint with the issuer "${issuer}" and the audience "${audience}"`
    return `${missing}: add it to sts.endpoints, or name the ones that are there`
  }
  if (kind === 'channel notifier') return `no notifier named "${name}"`
  return `no ${kind} named "${name}"`
}
