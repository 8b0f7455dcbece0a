import type { Standing } from '#engine/approvals/approval-authority.ts'
import type { ApprovalItem, ApprovalRecord, ApprovalView } from '#sdk/approvals.ts'
import type { Approval, ApprovalSummary } from '#storage/approval-store.ts'

export const approvalItem = (approval: ApprovalSummary): ApprovalItem => ({
  id: approval.id,
  label: approval.label,
  status: approval.state,
  workflow: { id: approval.run, name: approval.workflow },
  subject: approval.subject,
  requestor: approval.requestor,
  ...(approval.caller === undefined ? {} : { caller: approval.caller }),
  ...(approval.reason === undefined ? {} : { reason: approval.reason }),
  ...(approval.accessEnds === undefined ? {} : { accessEnds: approval.accessEnds }),
  ...(approval.newAccount === true ? { newAccount: true } : {}),
  opened: approval.opened,
  escalation: approval.escalation,
  version: approval.version,
})

export function approvalRecord(approval: Approval): ApprovalRecord {
  const { decided, decidedBy, onBehalfOf, comment } = approval
  return {
    ...approvalItem(approval),
    approvers: approval.approvers.map(({ login }) => login),
    ...(decided !== undefined && {
      decision: {
        at: decided,
        ...(decidedBy === undefined ? {} : { by: decidedBy.login, identity: decidedBy.identity }),
        ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
        ...(comment === undefined ? {} : { comment }),
      },
    }),
  }
}

export const approvalView = (approval: Approval, standing: Standing): ApprovalView => ({
  ...approvalRecord(approval),
  data: approval.data,
  ...(standing.kind === 'may' && standing.onBehalfOf !== undefined ? { onBehalfOf: standing.onBehalfOf } : {}),
  mayDecide: approval.state === 'open' && standing.kind === 'may',
})
