import type { AuditReader } from '#audit/audit-reader.ts'
import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Configuration } from '#config/configuration/configuration.ts'
import { isIssuedBy } from '#config/configuration/issuer.ts'
import { isStored } from '#config/sources/stored-objects.ts'
import type { VirtualDirectory } from '#directory/virtual-directory.ts'
import type { FactorHost } from '#features/account/second-factors/factor-host.ts'
import { type SecondFactorParts, SecondFactors } from '#features/account/second-factors/second-factors.ts'
import type { CallHost } from '#features/call-workflow/host.ts'
import type { TokenHost } from '#features/issuer/host.ts'
import type { Issuers } from '#features/issuer/service/issuers.ts'
import type { PasswordTaskHost } from '#features/passwords/host.ts'
import { PasswordChanges, type PasswordServices } from '#features/passwords/service/password-changes.ts'
import { offersResetLinks } from '#features/passwords/service/reset-links.ts'
import { Portal, PortalMemory } from '#features/portal/access/portal.ts'
import type { PortalStore } from '#features/portal/access/portal-store.ts'
import { offersProfile } from '#features/portal/access/profile-form.ts'
import type { PortalHost } from '#features/portal/host.ts'
import { createStatistics } from '#features/portal/statistics/read-statistics.ts'
import type { StatisticsStore } from '#features/portal/statistics/statistics-store.ts'
import { ReconciliationPlans } from '#features/reconciliation/service/plans.ts'
import type { ReconciliationServices, Reconciliations } from '#features/reconciliation/service/reconciliations.ts'
import { offersForm } from '#features/registration/service/offered-form.ts'
import { type RegistrationParts, Registrations } from '#features/registration/service/registrations.ts'
import type { Reports } from '#features/reports/report-endpoint.ts'
import type { EventStreams } from '#features/scim/events/event-streams.ts'
import type { ScimHost } from '#features/scim/host.ts'
import type { Journals } from '#features/scim/journal/journals.ts'
import type { ClientTokens } from '#features/scim/tokens/client-tokens.ts'
import type { ClientTokenHost } from '#features/scim/tokens/scim-token.ts'
import { AdmissionAudit } from '#features/sts/service/admission-audit.ts'
import type { TokenIssuing } from '#features/sts/service/token-issuing.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import { portalAddress } from '#mail/mail-links.ts'
import type { NotificationStore } from '#mail/notification-store.ts'
import { servedApis } from '#requests/pipeline/served-apis.ts'
import type { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { SessionChanges } from '#requests/sessions/session-changes.ts'
import { createSessionAccess, type Sessions } from '#requests/sessions/sessions.ts'
import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import type { HostFor } from '#sdk/host/host.ts'
import type { TargetHost } from '#sdk/target-module/target-module.ts'
import type { DynamicWorkflowSource } from '#sdk/workflow/dynamic-workflow.ts'
import type { ScriptSecrets } from '#sdk/workflow/script-secrets.ts'
import type { TaskHost, TaskTargets } from '#sdk/workflow/workflow-task.ts'
import { workflowWrites } from '#sdk/workflow/workflow-writes.ts'
import type { ApprovalDesk } from '#workflows/approvals/approval-desk.ts'
import { reloadRoot } from '#workflows/definitions/reload-root.ts'
import { WorkflowCatalog } from '#workflows/definitions/workflow-catalog.ts'
import { loginAttributes, workflowParameters } from '#workflows/definitions/workflow-parameters.ts'
import { OwnGrants } from '#workflows/grants/own-grants.ts'
import { withRemovalWorkflow } from '#workflows/grants/removal-workflow.ts'
import type { RunChanges } from '#workflows/runs/run-changes.ts'
import type { RunService } from '#workflows/runs/run-service.ts'
import type { GrantStore } from '#workflows/store/grant-store.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import { KnownGroupMappings } from '#workflows/targets/group-mappings.ts'

/** One object that implements the host of every slot; a module sees only its slot's part. */
export type GatewayHost = PortalHost &
  ScimHost &
  CallHost &
  PasswordTaskHost &
  FactorHost &
  TokenHost &
  ClientTokenHost &
  AuthHost &
  TaskHost &
  TargetHost

/** The services of the process that modules use. */
export interface HostServices extends PasswordServices {
  readonly clock: Clock
  readonly log: Logger
  readonly keys: KeySource
  readonly sessions: Sessions
  readonly grants: GrantStore
  readonly runs: RunStore
  readonly audit: AuditStore
  readonly openUserDirectory: GatewayHost['openUserDirectory']
  readonly journals: Journals
  readonly clientTokens: ClientTokens
  readonly scimClients: Omit<GatewayHost['scimClients'], 'urls' | 'named'>
  readonly runChanges: RunChanges
  readonly sessionChanges: SessionChanges
  readonly events: EventStreams
  readonly registrations: Pick<RegistrationParts, 'store' | 'secrets' | 'meter'>
  readonly portal: PortalStore
  readonly notifications: NotificationStore
  readonly statistics: StatisticsStore
  readonly auditReader: AuditReader
  readonly reconciliations: ReconciliationServices['reconciliations']
  /** What only a gateway has. */
  readonly installation?: Pick<PortalHost, 'metrics' | 'readSystem' | 'loaded' | 'tokenReport'> | undefined
  readonly secondFactors: Pick<SecondFactorParts, 'store' | 'secrets'>
  readonly scriptSecrets: SecretBox
}

/** The parts of one configuration that modules use. Some are filled only after the first modules are created. */
interface HostParts {
  readonly configuration: Configuration
  readonly services: HostServices
  readonly directory: VirtualDirectory
  readonly targets: Required<Pick<TaskTargets, 'get' | 'names' | 'ownersOf'>>
  readonly readTargets: GatewayHost['readTargets']
  readonly rules: RuleEvaluator
  readonly runs: RunService
  readonly approvals: ApprovalDesk
  readonly dynamicWorkflows: ReadonlyMap<string, DynamicWorkflowSource>
  readonly issuers: Issuers
  readonly watchIssuer: GatewayHost['watchIssuer']
  /** Absent if reports are not served. */
  readonly reports: Reports | undefined
  /** Undefined before the token endpoints are created, or if none are configured. */
  tokens(): TokenIssuing | undefined
  /** Undefined before they are created. */
  reconciliations(): Reconciliations | undefined
}

/** Everything that the modules of one configuration get. */
export function createHostFor(parts: HostParts): HostFor<GatewayHost> {
  const { configuration, services, rules, runs, issuers } = parts
  const { clock } = services
  const admissions = new AdmissionAudit(services)
  const shared = {
    clock,
    keys: services.keys,
    javaScript: (name) => configuration.javaScripts.get(name),
    texts: configuration.texts,
    ...directoryParts(parts),
    ...workflowParts(parts),
    ...pageParts(configuration),
    authorize: (subject, wanted) => rules.decide(subject, wanted),
    openUserDirectory: services.openUserDirectory,
    journals: services.journals,
    clientTokens: services.clientTokens,
    scimClients: {
      ...services.scimClients,
      urls: configuration.applications.flatMap(({ urls }) => urls),
      named: namedClients(configuration),
    },
    readStatistics: createStatistics(services.statistics, services.journals),
    audit: services.auditReader,
    reconciliations: {
      plans: new ReconciliationPlans({ ...services.reconciliations, clock }),
      configured: configuration.reconciliations,
      systems: (name, signal) => parts.reconciliations()?.systems(name, signal),
    },
    rateLimits: services.rateLimits,
    ...services.installation,
    eventStreams: services.events,
    portal: new Portal(
      withRemovalWorkflow(configuration),
      parts.dynamicWorkflows,
      new PortalMemory(services.portal, services.notifications),
    ),
    registrations: new Registrations({ ...services.registrations, runs, clock }),
    sessions: createSessionAccess(services.sessions, configuration),
    sessionChanges: (user, listener) => services.sessionChanges.listen(user, listener),
    secondFactors: new SecondFactors({ ...services.secondFactors, clock }),
    stsPodEndpoints: configuration.stsEndpoints.flatMap(({ pods }) => pods ?? []),
    recordAdmission: (admission) => admissions.record(admission),
    reports: parts.reports,
    ...(configuration.issuers.length === 0 ? {} : { issuers }),
    ...(parts.watchIssuer === undefined ? {} : { watchIssuer: parts.watchIssuer }),
    ownsIssuer: (issuer) =>
      configuration.issuers.some((own) => isIssuedBy(own, issuer)) ||
      configuration.stsEndpoints.some((own) => own.endpoint.issuer === issuer),
  } satisfies Omit<GatewayHost, 'name' | 'log' | 'tokens'>
  return (name, className, at) => {
    const tokens = parts.tokens()
    const log = services.log.with({ module: className, at })
    return { ...shared, name, log, tokens }
  }
}

/** Users, and the targets that they are in. */
function directoryParts({ configuration, services, directory, targets, readTargets }: HostParts) {
  const { clock, log } = services
  return {
    directory,
    targets,
    readTargets,
    groupMappings: new KnownGroupMappings({
      ...(configuration.groupMappings ?? { mappings: [], sources: [] }),
      targets,
      clock,
      log,
    }),
    scriptSecrets: sealedTexts(services.scriptSecrets),
    passwords: new PasswordChanges({ services, configuration, directory, targets }),
  } satisfies Partial<GatewayHost>
}

export const sealedTexts = (box: SecretBox): ScriptSecrets => ({
  seal: (text) => box.seal({ text }, 'text'),
  open: async (sealed) => String((await box.open(sealed, 'text'))['text']),
})

function workflowParts({ configuration, services, runs, approvals }: HostParts) {
  const tasks = (name: string) => configuration.workflows.get(name)?.tasks
  const mapping = (name: string) => configuration.targets.get(name)?.mapping
  return {
    workflows: runs,
    runs,
    runChanges: (listener) => services.runChanges.listen(listener),
    approvals,
    grants: new OwnGrants({ ...services, runs, store: services.runs }),
    workflowCatalog: new WorkflowCatalog(configuration, services.runs),
    workflowParameters: (workflow) => workflowParameters(configuration, workflow),
    loginAttributes: (workflow) => loginAttributes(configuration, workflow),
    workflowWrites: (workflow) => workflowWrites({ tasks, mapping }, workflow),
    reloadRoot: (workflow) => reloadRoot(tasks, workflow),
  } satisfies Partial<GatewayHost>
}

/** The clients that chains name, without those of tenants. */
const namedClients = ({ chains }: Configuration): ReadonlySet<string> =>
  new Set(
    [...chains.values()]
      .filter(({ at }) => !isStored(at))
      .flatMap(({ mechanisms }) => mechanisms.flatMap(({ mechanism }) => mechanism.clients ?? [])),
  )

/** What the filters of the configuration offer to each other. */
function pageParts(configuration: Configuration) {
  const pages = configuration.applications.flatMap(({ name: application, urls }) =>
    urls.flatMap(({ uri, filters }) => filters.map((filter) => ({ application, uri, filter }))),
  )
  return {
    portalUrl: portalAddress(configuration.applications),
    apis: servedApis(configuration),
    forms: pages.flatMap(({ filter }) => (offersForm(filter) ? [filter.form] : [])),
    profiles: pages.flatMap(({ application, uri, filter }) =>
      offersProfile(filter) ? [{ application, uri, form: filter.profile }] : [],
    ),
    resetLinks: pages.flatMap(({ application, filter }) =>
      offersResetLinks(filter) ? [{ application, links: filter.resetLinks }] : [],
    ),
  } satisfies Partial<GatewayHost>
}
