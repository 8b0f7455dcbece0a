import type { AdminRun, AdminStep } from '#contract/main-admin.ts'
import type { DecisionView, RequestApproval } from '#contract/main-requests.ts'
import type { Approval } from '#domain/approval.ts'
import type { Run, StoredStep } from '#domain/run.ts'

/** Has the members of the wire, no more and no fewer; times become text when it is written as JSON. */
type Document<T> = Readonly<Record<keyof T, unknown>>

/** Member by member, so that nothing is shown of a run that was not meant to be. */
export const runDocument = (run: Run) =>
  ({
    id: run.id,
    name: run.name,
    state: run.state,
    subject: run.subject,
    requestor: run.requestor,
    caller: run.caller,
    reason: run.reason,
    requestId: run.requestId,
    attempt: run.attempt,
    fence: run.fence,
    worker: run.worker,
    due: run.due,
    deadline: run.deadline,
    incident: run.incident,
    cancel: run.cancel,
    touched: run.touched,
    created: run.created,
    updated: run.updated,
    ended: run.ended,
  }) satisfies Document<AdminRun>

export const stepDocument = (step: StoredStep) =>
  ({
    id: step.id,
    number: step.number,
    attempt: step.attempt,
    task: step.task,
    taskType: step.taskType,
    label: step.label,
    started: step.started,
    ended: step.ended,
    outcome: step.outcome,
    error: step.error,
  }) satisfies Document<AdminStep>

export const approvalDocument = ({ decision, ...approval }: Approval) =>
  ({
    id: approval.id,
    label: approval.label,
    status: approval.state,
    opened: approval.opened,
    escalation: approval.escalation,
    approvers: approval.approvers.map(({ login }) => login),
    decision:
      decision === undefined
        ? undefined
        : ({
            at: decision.at,
            by: decision.by?.login,
            onBehalfOf: decision.onBehalfOf,
            comment: decision.comment,
          } satisfies Document<DecisionView>),
  }) satisfies Document<RequestApproval>
