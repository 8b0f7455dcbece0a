import type { NewApproval } from '#domain/approval.ts'
import type { NewMail } from '#domain/mail.ts'
import type { TimerHandler } from '#engine/workflow/timer-loop.ts'
import { isSecretAttribute } from '#identity/attributes.ts'
import type { RunIdentities } from '#identity/identity.ts'
import type { User } from '#identity/user.ts'
import { isForbiddenKey, type JsonObject } from '#kernel/json.ts'
import type { NewAccount } from '#sdk/target/new-account.ts'
import type { ApprovalRequest } from '#sdk/workflow/approval.ts'
import type { ApprovalAccess } from '#sdk/workflow/approvals.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'
import type { WorkflowUser } from '#sdk/workflow/workflow-task.ts'

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

const maxNames = 100
const maxValues = 20
const maxLength = 2000
/** Characters of all that is shown. */
const maxTotal = 64 * 1024

/** While memberships are unknown, the groups that the user is to join are among the changes. */
type RequestedUser = User & Partial<Pick<WorkflowUser, 'keepGroups' | 'groupChanges'>>

/**
 * What approvers are shown: the subject's attributes and groups, and the request's parameters. Passwords and whatever is
 * named like a secret are left out, as are the keys of the engine; long lists and texts are cut.
 */
export function approvalData(user: RequestedUser, request: ReadonlyMap<string, unknown>): JsonObject {
  let left = maxTotal
  const cut = (text: string): string => {
    const shown = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
    left -= shown.length
    return left < 0 ? '…' : shown
  }
  const parameters: Record<string, string> = Object.create(null)
  for (const [name, value] of shownOf(request)) {
    if (typeof value === 'string' && !isEngineKey(name)) parameters[name] = cut(value)
  }
  const attributes: Record<string, readonly string[]> = Object.create(null)
  for (const [name, values] of shownOf(user.attributes)) attributes[name] = values.slice(0, maxValues).map(cut)
  const groups = user.keepGroups === true ? (user.groupChanges?.add ?? []) : user.groups
  return { attributes, groups: groups.slice(0, maxNames).map(cut), parameters }
}

function shownOf<V>(source: Iterable<readonly [string, V]>): (readonly [string, V])[] {
  return [...source].filter(([name]) => !isSecretAttribute(name) && !isForbiddenKey(name)).slice(0, maxNames)
}
