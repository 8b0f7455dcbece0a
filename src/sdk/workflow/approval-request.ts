import type { TimeSpan } from '#kernel/time.ts'
import type { MailText } from '#sdk/mail/mail.ts'
import type { Rule } from '#sdk/rule/rule.ts'

/** An approval that a task requests. The engine finds the approvers, handles the timers and returns the decision. */
export interface ApprovalRequest {
  readonly label: string
  /** Users who pass one of them may decide; checked again at the decision. */
  readonly approvers: readonly Rule[]
  /** Requester and subject may also decide. */
  readonly allowSelf: boolean
  /** A decision needs a comment. */
  readonly commentRequired?: boolean
  /** In order; each delay counts from the previous one, the first from the opening. */
  readonly escalations: readonly Escalation[]
  /**
   * The approvers if the rules find no one, and after the last escalation has waited as long again. Absent: the
   * approvers stay the same.
   */
  readonly failure?: readonly Rule[] | undefined
  /** The mail to every approver, now and at each escalation. */
  readonly mail?: ApproverMail
}

/** Gatehouse writes the subject, in the language of each approver. */
export interface ApproverMail extends Omit<MailText, 'subject'> {
  /** The attribute with the addresses of approvers. */
  readonly address: string
  /** A Notifier whose channel also gets the text, with links that require a login. */
  readonly channel?: string
  /** Approvers get it as it happens, also those who chose otherwise. */
  readonly required?: boolean
}

interface Escalation {
  readonly after: TimeSpan
  readonly approvers: readonly Rule[]
  /** It happens only if the subject of the request passes this. */
  readonly onlyIf?: Rule
}

/** How an approval ended; the task that requested it finds it when it runs again. */
export interface ApprovalSignal {
  readonly kind: 'approval'
  readonly approval: string
  readonly approved: boolean
  /** Absent if no one decided in time. */
  readonly by?: string
  readonly onBehalfOf?: string
  readonly comment?: string
}
