import type { NewApproval } from '#domain/approval.ts'
import type { NewMail } from '#domain/mail.ts'
import type { RequestedUser } from '#engine/approvals/approval-data.ts'
import type { TimerHandler } from '#engine/workflow/timer-loop.ts'
import type { RunIdentities } from '#identity/identity.ts'
import type { NewAccount } from '#sdk/target/new-account.ts'
import type { ApprovalRequest } from '#sdk/workflow/approval.ts'
import type { ApprovalAccess } from '#sdk/workflow/approvals.ts'

/** The run that is to wait for an approval. */
export interface ApprovalRun {
  readonly id: string
  readonly name: string
  /** The number of the step that asks. */
  readonly step: number
  /** The login of the user the run is about. */
  readonly subject: string
  readonly requestor: string
  readonly caller?: string
  readonly who: RunIdentities
  /** The user as the task sees it, and the request map; what approvers are shown of them holds no secrets. */
  readonly user: RequestedUser
  readonly request: ReadonlyMap<string, unknown>
  /** The run may only create accounts: approvers are shown what was submitted. */
  readonly newAccount?: NewAccount
}

export interface ReminderRequest {
  /** Approvals that have been open for at least this long. */
  readonly openForMillis: number
  /** What makes a repetition the same reminder, such as the job's due time; nobody is reminded twice under one key. */
  readonly key: string
  /** `%L` is the label, `%D` the number of days it has been open. */
  readonly message?: string
  /** The attribute that holds approvers' addresses, for approvals that name none. */
  readonly mailAttribute?: string
  /** At most this many approvals, the oldest first; 10,000 when absent. */
  readonly limit?: number
  /** Ends between two approvals. */
  readonly signal?: AbortSignal
}

/** The kind of the timers that `escalate` is the handler of. */
export const escalationTimer = 'approval-escalation'

/** Approvals of one configuration: whom to ask, who may decide, what happens when nobody does. */
export interface ApprovalDesk extends ApprovalAccess {
  /**
   * What is committed with the step that waits. Nothing is stored here. Throws NO_APPROVERS, which is an incident, when
   * nobody may decide, or when the rules cover more people than anybody meant.
   */
  open(request: ApprovalRequest, run: ApprovalRun): Promise<NewApproval>
  /** Mails to the approvers of a run that ended without doing what they approved. The caller stores them when it ends the run. */
  mailsToDeciders(run: string, text: string): Promise<readonly NewMail[]>
  readonly escalate: TimerHandler
  /**
   * Looks who may decide what has been open for long, oldest first, gives it to those who may by now, and mails to them;
   * how many approvals.
   */
  remind(request: ReminderRequest): Promise<number>
}
