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

/** The run that will wait for an approval. */
export interface ApprovalRun {
  readonly id: string
  readonly name: string
  /** The number of the step that requests it. */
  readonly step: number
  /** The login of the user the run is about. */
  readonly subject: string
  readonly requestor: string
  readonly caller?: string
  readonly who: RunIdentities
  /** The user as the task sees it, and the request map. Approvers see them without secrets. */
  readonly user: RequestedUser
  readonly request: ReadonlyMap<string, unknown>
  /** The run may only create accounts: approvers see the submitted values. */
  readonly newAccount?: NewAccount
}

export interface ReminderRequest {
  /** Approvals that have been open for at least this long. */
  readonly openForMillis: number
  /** Identifies the reminder, such as the job's due time. No user gets a second reminder with the same key. */
  readonly key: string
  /** `%L` is the label, `%D` the number of days since it was opened. */
  readonly message?: string
  /** The attribute with approvers' addresses, for approvals that name none. */
  readonly mailAttribute?: string
  /** The maximum number of approvals, oldest first; 10,000 if absent. */
  readonly limit?: number
  /** Stops between two approvals. */
  readonly signal?: AbortSignal
}

/** The kind of the timers that `escalate` handles. */
export const escalationTimer = 'approval-escalation'

/** Approvals of one configuration: who is asked, who may decide, and what happens if no one does. */
export interface ApprovalDesk extends ApprovalAccess {
  /**
   * The part of the commit of the waiting step. Stores nothing. Throws NO_APPROVERS, which is an incident, if no
   * one may decide or the rules match too many users.
   */
  open(request: ApprovalRequest, run: ApprovalRun): Promise<NewApproval>
  /**
   * Mails to the approvers of a run that ended without the approved change. The caller stores them when it ends the
   * run.
   */
  mailsToDeciders(run: string, text: string): Promise<readonly NewMail[]>
  readonly escalate: TimerHandler
  /**
   * Finds the current approvers of approvals that have been open for long, oldest first, assigns the approvals to
   * them and mails them. Returns the number of approvals.
   */
  remind(request: ReminderRequest): Promise<number>
}

const maxNames = 100
const maxValues = 20
const maxLength = 2000
/** The maximum number of characters in total. */
const maxTotal = 64 * 1024

/** While memberships are unknown, the groups that the user will join are among the changes. */
type RequestedUser = User & Partial<Pick<WorkflowUser, 'keepGroups' | 'groupChanges'>>

/**
 * What approvers see: the subject's attributes and groups, and the request's parameters. Leaves out secrets and the
 * keys of the engine; cuts long lists and texts.
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
