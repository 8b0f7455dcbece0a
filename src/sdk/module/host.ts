import type { KeyObject } from 'node:crypto'
import type { Directory } from '#identity/directory.ts'
import type { Identity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import type { UserDirectory, UserDirectoryOptions } from '#identity/user-directory.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { PodEndpoint } from '#kernel/pod-endpoint.ts'
import type { IssuerAccess } from '#sdk/auth/issuer.ts'
import type { Rule, RuleDecision } from '#sdk/auth/rule.ts'
import type { SecondFactorAccess } from '#sdk/auth/second-factors.ts'
import type { SessionAccess } from '#sdk/auth/session.ts'
import type { EventStream, EventStreamOptions, PollEvents } from '#sdk/filter/event-stream.ts'
import type { Journal, JournalOptions, ReadJournal } from '#sdk/filter/journal.ts'
import type { PasswordAccess } from '#sdk/filter/password-changes.ts'
import type { PodAdmission } from '#sdk/filter/pod-admission.ts'
import type { PortalAccess } from '#sdk/filter/portal.ts'
import type { RegistrationAccess } from '#sdk/filter/registrations.ts'
import type { ReportEndpoint } from '#sdk/filter/reports.ts'
import type { ReadStatistics } from '#sdk/filter/statistics.ts'
import type { TokenService } from '#sdk/filter/token-service.ts'
import type { Mapping } from '#sdk/mapper/mapping.ts'
import type { Target } from '#sdk/target/target.ts'
import type { ApprovalAccess } from '#sdk/workflow/approvals.ts'
import type { GrantAccess } from '#sdk/workflow/grants.ts'
import type { RunAccess } from '#sdk/workflow/runs.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow/workflow.ts'
import type { WorkflowWrites } from '#sdk/workflow/workflow-writes.ts'

/** All that a module may ask of Gatehouse. It belongs to one configuration and ends with it. */
export interface ModuleHost {
  /** The name of the YAML object the module belongs to. */
  readonly name: string
  /** Carries the module's class name and where it is configured. */
  readonly log: Logger
  readonly clock: Clock
  readonly targets: TargetSource
  readonly workflows: WorkflowStarter
  /** Runs that outlive their call. */
  readonly runs: RunAccess
  readonly approvals: ApprovalAccess
  readonly grants: GrantAccess
  /** The request parameters that a workflow, and those it calls, take; undefined when there is no workflow of that name. */
  workflowParameters(name: string): ReadonlySet<string> | undefined
  /**
   * The attributes that the workflow, those it calls, or any target makes logins of; `any` where a mapper may read anything
   * for one.
   */
  loginAttributes(workflow: string): ReadonlySet<string> | 'any'
  /** What a workflow, and those it calls, write of what they're started with. */
  workflowWrites(workflow: string): WorkflowWrites
  /** The virtual directory. */
  readonly directory: Directory
  readonly keys: KeySource
  /** The text of a JavaScriptMapping object. */
  javaScript(name: string): string | undefined
  /** Any rule passes; none denies. */
  authorize(subject: Subject, rules: readonly Rule[]): Promise<RuleDecision>
  /** Users and groups in Gatehouse's own database, or in another one. Closed by whoever opened it. */
  openUserDirectory(options: UserDirectoryOptions): Promise<UserDirectory>
  /** Where an API writes down the calls it answered. Closed by whoever opened it. */
  openJournal(options: JournalOptions): Journal
  readonly readJournal: ReadJournal
  readonly readStatistics: ReadStatistics
  /** Where events are put that receivers are to get, durably and in order. Closed by whoever opened it. */
  openEventStream(options: EventStreamOptions): EventStream
  readonly pollEvents: PollEvents
  /** The endpoints of the token service that have an injector. None when absent. */
  readonly stsPodEndpoints?: readonly PodEndpoint[]
  /** Writes what the injector decided to the audit, within a second or so. Never rejects. */
  recordAdmission?(admission: PodAdmission): Promise<void>
  /** What a portal shows: orgs, links, reports, workflows. */
  readonly portal: PortalAccess
  /** Absent where reports are not served. */
  readonly reports?: ReportEndpoint
  /** The token endpoints; absent where none are configured. */
  readonly tokens?: TokenService
  readonly sessions: SessionAccess
  /** Our own OpenID Connect issuers; absent where none are configured. */
  readonly issuers?: IssuerAccess
  /** Whether tokens with this `iss` are made here, by the clock that verifies them. Never, when absent. */
  ownsIssuer?(issuer: string): boolean
  readonly secondFactors: SecondFactorAccess
  /** Passwords that users set themselves. */
  readonly passwords: PasswordAccess
  /** What registration forms keep. */
  readonly registrations: RegistrationAccess
}

export interface TargetSource {
  /** Throws INTERNAL when there is none of that name; the configuration check has made sure that there is. */
  get(name: string): Target
  /** Who the owners of the target's account are; empty where no directory insert is known to show the account. */
  ownersOf?(name: string, userID: string): Promise<readonly Identity[]>
  /** The target's `targetAttributes`, ready to use; undefined when everything passes unmapped. Known to workflow tasks only. */
  mapping?(name: string): Mapping | undefined
}

export interface WorkflowStarter {
  /**
   * Synchronous calls settle when the last task ended, and reject when it failed. Rejects with NOT_SUPPORTED when there is
   * no workflow of that name, which only an optional reference can lead to. `started` gets the id of a synchronous run
   * before its first task, so that a failed run can be named too.
   */
  run(call: WorkflowCall, started?: (id: string) => void): Promise<WorkflowResult>
}

export interface KeySource {
  /** The public key of a certificate or key by name; undefined when there is none. */
  publicKey(name: string): Promise<KeyObject | undefined>
  /** The certificate of that name, as PEM; undefined when there is none, or a bare key. */
  certificate?(name: string): Promise<string | undefined>
  /** A signing key pair of this installation, made on first use and kept in its data folder. */
  signingKey(name: string): Promise<{ readonly privateKey: KeyObject; readonly publicKey: KeyObject }>
  /**
   * Secret keys of 256 bits for one purpose, known to all gateways that share a database: the first signs, all of them
   * verify, so that they can be replaced. At least one.
   */
  secretKeys(purpose: string): Promise<readonly KeyObject[]>
}
