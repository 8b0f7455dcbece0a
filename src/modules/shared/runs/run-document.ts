import type { AdminRun, AdminStep } from '#contract/main-admin.ts'
import type { DecisionView, RequestApproval } from '#contract/main-requests.ts'
import { adminRun, adminStep } from '#contract/schemas/main-admin.ts'
import { wireForm } from '#contract/wire.ts'
import type { Approval, ApprovalDecision } from '#domain/approval.ts'
import type { Run, StoredStep } from '#domain/run.ts'

export const runDocument = (run: Run): AdminRun => wireForm(adminRun, run)

export const stepDocument = (step: StoredStep): AdminStep => wireForm(adminStep, step)

export const approvalDocument = ({ id, label, state, opened, escalation, ...rest }: Approval): RequestApproval => ({
  id,
  label,
  status: state,
  opened: opened.toISOString(),
  escalation,
  approvers: rest.approvers.map(({ login }) => login),
  ...(rest.decision === undefined ? {} : { decision: decisionView(rest.decision) }),
})

export const decisionView = ({ at, by, onBehalfOf, comment }: ApprovalDecision): DecisionView => ({
  at: at.toISOString(),
  ...(by === undefined ? {} : { by: by.login }),
  ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
  ...(comment === undefined ? {} : { comment }),
})
