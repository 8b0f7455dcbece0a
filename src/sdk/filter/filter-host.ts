import type { AuditAccess } from '#audit/audit-access.ts'
import type { IssuerAccess } from '#config/configuration/issuer.ts'
import type { SecondFactorAccess } from '#features/account/second-factors/second-factor-access.ts'
import type { PasswordAccess } from '#features/passwords/service/password-access.ts'
import type { ConfigurationAccess } from '#features/portal/console/configuration-access.ts'
import type { SystemAccess } from '#features/portal/console/system-access.ts'
import type { PortalAccess } from '#features/portal/front/portal-access.ts'
import type { ServedProfile } from '#features/portal/front/profile-form.ts'
import type { ReadStatistics } from '#features/portal/statistics/statistics-query.ts'
import type { RegistrationAccess, RegistrationForm } from '#features/registration/service/registration-access.ts'
import type { ReportEndpoint } from '#features/reports/report-call.ts'
import type { EventStream, EventStreamOptions, PollEvents } from '#features/scim/events/event-stream.ts'
import type { Journal, JournalOptions, ReadJournal } from '#features/scim/journal/journal.ts'
import type { PodAdmission } from '#features/sts/service/pod-admission.ts'
import type { TokenReportAccess } from '#features/sts/service/token-report-view.ts'
import type { TokenService } from '#features/sts/service/token-service.ts'
import type { MemberDirectory } from '#identity/directory.ts'
import type { Subject } from '#identity/subject.ts'
import type { UserDirectory, UserDirectoryOptions } from '#identity/user-directory.ts'
import type { RateLimits } from '#kernel/rate-limit.ts'
import type { PodEndpoint } from '#protocols/admission/pod-endpoint.ts'
import type { ListenToSessions } from '#requests/sessions/session-listener.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import type { SessionAccess } from '#sdk/auth/session.ts'
import type { ServedApi } from '#sdk/filter/filter-api.ts'
import type { MetricsAccess } from '#sdk/filter/metrics-access.ts'
import type { WorkflowWrites } from '#sdk/flow/flow.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import type { ConfiguredTexts } from '#sdk/page/configured-texts.ts'
import type { Rule, RuleDecision } from '#sdk/rule/rule.ts'
import type { TargetSource } from '#sdk/target/target.ts'
import type { OwnAccess } from '#sdk/workflow/grants.ts'
import type { WorkflowStarter } from '#sdk/workflow/workflow.ts'
import type { ApprovalAccess } from '#workflows/approvals/approval-access.ts'
import type { WorkflowCatalog } from '#workflows/definitions/workflow-catalog-view.ts'
import type { RunAccess } from '#workflows/record/run-access.ts'
import type { ListenToRuns } from '#workflows/runs/run-listener.ts'
import type { ReadTargets } from '#workflows/targets/target-status.ts'

/** What a filter may use of Gatehouse: filters are its APIs, so each access is one part of the product. */
export interface FilterHost extends ModuleHost, WorkflowFacts {
  readonly targets: TargetSource
  readonly readTargets: ReadTargets
  /** The virtual directory. */
  readonly directory: MemberDirectory
  readonly keys: KeySource
  /** One passing rule is enough; no rule denies. */
  authorize(subject: Subject, rules: readonly Rule[]): Promise<RuleDecision>
  readonly workflows: WorkflowStarter
  /** Stored runs. */
  readonly runs: RunAccess
  readonly runChanges: ListenToRuns
  readonly approvals: ApprovalAccess
  /** The workflows of the configuration, for administrators. */
  readonly workflowCatalog: WorkflowCatalog
  readonly grants: OwnAccess
  readonly sessions: SessionAccess
  readonly sessionChanges: ListenToSessions
  readonly secondFactors: SecondFactorAccess
  /** Passwords that users set themselves. */
  readonly passwords: PasswordAccess
  readonly registrations: RegistrationAccess
  /** What a portal shows: orgs, links, reports, workflows. */
  readonly portal: PortalAccess
  /** The address of the portal, without a slash at its end; absent if none is configured. */
  readonly portalUrl?: string
  /** The APIs of the configuration; none if absent. */
  readonly apis?: readonly ServedApi[]
  /** The registration forms of the configuration; none if absent. */
  readonly forms?: readonly RegistrationForm[]
  /** The profiles of the portals of the configuration; none if absent. */
  readonly profiles?: readonly ServedProfile[]
  /** Texts of the configuration in other languages; absent if there are none. */
  readonly texts?: ConfiguredTexts
  /** Absent if the gateway serves no reports. */
  readonly reports?: ReportEndpoint
  /** Our own OpenID Connect issuers; absent if none are configured. */
  readonly issuers?: IssuerAccess
  /** The token endpoints; absent if none are configured. */
  readonly tokens?: TokenService
  /** The endpoints of the token service that have an injector. None if absent. */
  readonly stsPodEndpoints?: readonly PodEndpoint[]
  /** Writes a decision of the injector to the audit, within about a second. Never rejects. */
  recordAdmission?(admission: PodAdmission): Promise<void>
  /** Opens users and groups in Gatehouse's own database, or in another one. The caller closes it. */
  openUserDirectory(options: UserDirectoryOptions): Promise<UserDirectory>
  /** Opens the journal in which an API records the calls it answered. The caller closes it. */
  openJournal(options: JournalOptions): Journal
  readonly readJournal: ReadJournal
  readonly readStatistics: ReadStatistics
  readonly audit: AuditAccess
  /** Counted by all processes of the gateway together. */
  readonly rateLimits: RateLimits
  /** Absent in commands, which serve nothing. */
  readonly system?: SystemAccess
  /** Absent in commands. */
  readonly loaded?: ConfigurationAccess
  /** Absent in commands. */
  readonly tokenReport?: TokenReportAccess
  /** Absent in commands. */
  readonly metrics?: MetricsAccess
  /** Opens a stream that delivers events to receivers, durably and in order. The caller closes it. */
  openEventStream(options: EventStreamOptions): EventStream
  readonly pollEvents: PollEvents
}

/** What the configuration shows about a workflow and those it calls. */
interface WorkflowFacts {
  /** The request parameters that they accept; undefined for an unknown workflow. */
  workflowParameters(name: string): ReadonlySet<string> | undefined
  /** The attributes from which they, or any target, make logins; `any` if a mapper may read any attribute. */
  loginAttributes(workflow: string): ReadonlySet<string> | 'any'
  /** What they write of their input. */
  workflowWrites(workflow: string): WorkflowWrites
}
