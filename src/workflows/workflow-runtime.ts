import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Configuration } from '#config/configuration/configuration.ts'
import type { MemberDirectory } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Scope } from '#kernel/scope.ts'
import { MailChoices } from '#mail/mail-choices.ts'
import { portalLinks } from '#mail/mail-links.ts'
import type { MailStore } from '#mail/mail-store.ts'
import type { NotificationStore } from '#mail/notification-store.ts'
import type { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { SessionStore } from '#requests/sessions/session-store.ts'
import type { Authorization } from '#sdk/auth/authorization.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import type { HostFor } from '#sdk/host/host.ts'
import type { JobHost } from '#sdk/job/job.ts'
import type { TaskHost } from '#sdk/workflow/workflow-task.ts'
import { ApprovalDesk } from '#workflows/approvals/approval-desk.ts'
import { linksFor } from '#workflows/approvals/approval-links.ts'
import { ApproverFinder } from '#workflows/approvals/approvers.ts'
import { revokeDue } from '#workflows/grants/grant-revoker.ts'
import { withRemovalWorkflow } from '#workflows/grants/removal-workflow.ts'
import { type JobServices, startJobs } from '#workflows/jobs/job-scheduler.ts'
import { createMaintenanceTasks } from '#workflows/jobs/maintenance-tasks.ts'
import { mailDigests } from '#workflows/mails/digest-mails.ts'
import { mailOutcomes } from '#workflows/mails/outcome-mails.ts'
import { ApprovalPreview } from '#workflows/runs/previews.ts'
import { RunService } from '#workflows/runs/run-service.ts'
import { createWorkflows, type Workflows } from '#workflows/runs/workflows.ts'
import type { WorkflowServices } from '#workflows/steps/workflow-services.ts'
import type { ApprovalStore } from '#workflows/store/approval-store.ts'
import type { DelegationStore } from '#workflows/store/delegation-store.ts'
import type { GrantStore } from '#workflows/store/grant-store.ts'

/** What workflows, approvals and jobs of all configurations share. */
export interface WorkflowRuntimeServices extends WorkflowServices {
  readonly audit: AuditStore
  readonly keys: KeySource
  readonly approvals: ApprovalStore
  readonly delegations: DelegationStore
  readonly mails: MailStore
  readonly grants: GrantStore
  readonly sessionStore: SessionStore
  readonly notifications: NotificationStore
  /** Present if this process runs jobs. */
  readonly jobs?: JobServices
}

interface WorkflowRuntimeParts {
  readonly configuration: Configuration
  readonly services: WorkflowRuntimeServices
  readonly directory: MemberDirectory
  readonly root: Dn
  readonly rules: RuleEvaluator
  /** May be filled later. */
  readonly authorizations: ReadonlyMap<string, Authorization>
}

/** The workflows of one configuration, with their approvals and jobs. Modules may refer to it before it is started. */
export class WorkflowRuntime {
  readonly approvals: ApprovalDesk
  readonly runs: RunService
  readonly #parts: WorkflowRuntimeParts
  readonly #choices: MailChoices
  #workflows: Workflows | undefined

  constructor(parts: WorkflowRuntimeParts) {
    const { configuration, services } = parts
    this.#parts = parts
    this.#choices = new MailChoices(services.notifications, configuration)
    const preview = new ApprovalPreview({ ...services, workflows: () => this.workflows })
    this.approvals = new ApprovalDesk({
      ...parts,
      ...services,
      linksFor: linksFor(configuration, services),
      pages: portalLinks(configuration.applications),
      choices: this.#choices,
      preview: (approval, by) => preview.of(approval, by),
      newAccounts: preview,
    })
    this.runs = new RunService(() => this.workflows, services)
  }

  /** Throws INTERNAL before `start`. */
  get workflows(): Workflows {
    if (this.#workflows === undefined) throw new GatewayError('INTERNAL', 'workflows are not ready yet')
    return this.#workflows
  }

  /** Creates the tasks of every workflow; targets and authorizations already exist. */
  async start(host: HostFor<TaskHost>, scope: Scope): Promise<void> {
    const { configuration, services } = this.#parts
    const hostFor = (name: string, at: string): TaskHost => host(name, 'workflow', at)
    const whole = withRemovalWorkflow(configuration)
    this.#workflows = scope.own(await createWorkflows(whole, hostFor, services, this.approvals, this.#choices))
  }

  /** Starts the runs that remove expired access; returns how many. */
  revokeDue(signal?: AbortSignal): Promise<number> {
    const { grants, runs: store, log } = this.#parts.services
    return revokeDue({ grants, store, runs: this.runs, log }, signal)
  }

  /** Starts the jobs, if this process runs any. */
  async startJobs(hostFor: HostFor<JobHost>, scope: Scope): Promise<void> {
    const { configuration, services } = this.#parts
    const { jobs, clock, log, leaseMillis, runs, mails, idempotency, audit, sessionStore } = services
    if (jobs === undefined) return
    const mailing = {
      finder: new ApproverFinder({ ...this.#parts, log }),
      pages: portalLinks(configuration.applications),
      choices: this.#choices,
      workflowOf: (name: string) => configuration.workflows.get(name),
      texts: configuration.texts,
    }
    const maintenance = createMaintenanceTasks({
      stores: { runs, mails, idempotency, jobRuns: jobs.store, audit, sessions: sessionStore },
      clock,
      approvals: this.approvals,
      revokeDue: (signal) => this.revokeDue(signal),
      mailOutcomes: (request) => mailOutcomes(request, { ...services, ...mailing }),
      mailDigests: (request) => mailDigests(request, { ...services, ...mailing, approvals: this.approvals }),
    })
    scope.own(await startJobs(configuration, { ...jobs, maintenance, clock, log, leaseMillis, hostFor }))
  }
}
