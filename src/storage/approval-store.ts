import type { AuditEntry } from '#domain/audit.ts'
import type { NewMail } from '#domain/mail.ts'
import type { NewTimer, TimerClaim } from '#domain/timer.ts'
import type { Identity, RunIdentities, UserRef } from '#identity/identity.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'

export type ApprovalState = 'open' | 'approved' | 'denied' | 'cancelled'

/** What a run waits for; opened in the commit that makes it wait. */
export interface NewApproval {
  /** Unique, and sorts by creation time; made by whoever opens it. */
  readonly id: string
  readonly step: number
  readonly label: string
  readonly approvers: readonly UserRef[]
  /** Requester and subject may decide as well. */
  readonly allowSelf: boolean
  /** What the approvers were found by; checked again when somebody decides. */
  readonly rules: JsonValue
  /** What approvers are shown. */
  readonly data: JsonObject
  /** When access that is given is to end, as the request says when it is opened. */
  readonly accessEnds?: Date
  /** The run may only create accounts. */
  readonly newAccount?: boolean
  /** Escalations and reminders. They name the approval, and end with it. */
  readonly timers: readonly NewTimer[]
  readonly mails: readonly NewMail[]
}

export interface ApprovalSummary {
  readonly id: string
  readonly run: string
  readonly workflow: string
  readonly step: number
  readonly label: string
  readonly state: ApprovalState
  readonly subject: string
  readonly requestor: string
  /** The authenticated caller, where that is another than the requestor. */
  readonly caller?: string
  readonly who: RunIdentities
  readonly reason?: string
  readonly accessEnds?: Date
  /** The run may only create accounts. */
  readonly newAccount?: boolean
  readonly opened: Date
  /** How many escalations there were. */
  readonly escalation: number
  /** Changes when the approval is given to others or decided. */
  readonly version: number
}

export interface Approval extends ApprovalSummary {
  readonly approvers: readonly UserRef[]
  readonly allowSelf: boolean
  readonly rules: JsonValue
  readonly data: JsonObject
  readonly decided?: Date
  readonly decidedBy?: UserRef
  readonly onBehalfOf?: string
  readonly comment?: string
}

export interface Decision {
  readonly approval: string
  /** The one that the decision was made on: whoever decides was an approver of that version. */
  readonly version: number
  readonly outcome: Exclude<ApprovalState, 'open'>
  /** Who decides; absent where a timer does. */
  readonly by?: UserRef
  /** For whom a deputy decides. */
  readonly onBehalfOf?: string
  readonly comment?: string
  /** What the run finds when it goes on. */
  readonly signal: JsonObject
  readonly audit: readonly AuditEntry[]
  readonly mails?: readonly NewMail[]
  /** The timer that decides. It is refused when another has it by now. */
  readonly timer?: TimerClaim
}

export interface Reassignment {
  readonly approval: string
  readonly version: number
  /** Instead of those before. */
  readonly approvers: readonly UserRef[]
  readonly rules: JsonValue
  readonly escalation: number
  readonly audit: readonly AuditEntry[]
  readonly mails: readonly NewMail[]
  /** Beside those that the approval has. */
  readonly timers: readonly NewTimer[]
  readonly timer?: TimerClaim
}

export interface ApprovalPage {
  /** Oldest first. */
  readonly approvals: readonly ApprovalSummary[]
  /** Where the following page starts; absent on the last one. */
  readonly next?: string
}

export interface ApprovalPageQuery {
  readonly after?: string
  /** At most 500 come back, whatever is asked. */
  readonly limit: number
}

export interface ApprovalFigures {
  readonly open: number
  readonly oldestMillis?: number
}

export interface ApprovalStore {
  get(id: string): Promise<Approval | undefined>
  /** Of a run, oldest first, at most 500. */
  listOfRun(run: string): Promise<readonly ApprovalSummary[]>
  /**
   * Open ones that were given to any of these users, each once. What a page costs does not grow with the number of open
   * approvals. Throws BAD_REQUEST for more than 200 identities and for an `after` that no page gave.
   */
  listForApprovers(approvers: readonly Identity[], query: ApprovalPageQuery): Promise<ApprovalPage>
  /** All open ones that were opened before then. */
  listOpen(openedBefore: Date, query: ApprovalPageQuery): Promise<ApprovalPage>
  /**
   * Decides once, and lets the run go on: decision, the run's return to `ready`, audit, mails and the end of the
   * approval's timers are one transaction. Throws NOT_FOUND; CONFLICT when it is decided or its run no longer waits;
   * VERSION_MISMATCH when others are to decide by now, or when the timer is another's.
   */
  decide(decision: Decision): Promise<Approval>
  /** Gives an open approval to others. Throws as `decide` does. */
  reassign(change: Reassignment): Promise<Approval>
  figures(): Promise<ApprovalFigures>
}
