import type { TimeSpan } from '#kernel/time.ts'
import type { Rule } from '#sdk/auth/rule.ts'
import type { MailText } from '#sdk/notifier/mail.ts'

/** An approval that a task asks for. The engine finds the approvers, keeps the time and brings the decision back. */
export interface ApprovalRequest {
  readonly label: string
  /** Whoever passes one of them may decide; checked again when somebody does. */
  readonly approvers: readonly Rule[]
  /** Requester and subject may decide as well. */
  readonly allowSelf: boolean
  /** In their order; each delay counts from the one before, the first from the opening. */
  readonly escalations: readonly Escalation[]
  /**
   * Whom it goes to where the rules find nobody, and when the last escalation has been left for as long as it had waited
   * itself. Absent, it stays with those who have it.
   */
  readonly failure?: readonly Rule[]
  /** Told to every approver, now and at each escalation; `address` names the attribute that holds their addresses. */
  readonly mail?: MailText & { readonly address: string }
}

export interface Escalation {
  readonly after: TimeSpan
  readonly approvers: readonly Rule[]
  /** It takes place only if the subject of the request passes this. */
  readonly onlyIf?: Rule
}

/** How an approval ended; what the task that asked for it finds when it is run again. */
export interface ApprovalDecision {
  readonly kind: 'approval'
  readonly approval: string
  readonly approved: boolean
  /** Absent where nobody decided in time. */
  readonly by?: string
  readonly onBehalfOf?: string
  readonly comment?: string
}
