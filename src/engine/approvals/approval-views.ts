import type { Approval } from '#domain/approval.ts'
import type { Standing } from '#engine/approvals/approval-authority.ts'
import type { ApprovalView } from '#sdk/approvals.ts'

export const approvalView = (approval: Approval, standing: Standing): ApprovalView => ({
  ...approval,
  ...(standing.kind === 'may' && standing.onBehalfOf !== undefined ? { onBehalfOf: standing.onBehalfOf } : {}),
  mayDecide: approval.state === 'open' && standing.kind === 'may',
})
