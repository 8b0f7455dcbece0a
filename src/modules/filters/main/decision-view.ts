import type { DecisionView } from '#contract/main-requests.ts'
import type { ApprovalRecord } from '#sdk/approvals.ts'

export const decisionView = ({
  at,
  by,
  onBehalfOf,
  comment,
}: NonNullable<ApprovalRecord['decision']>): DecisionView => ({
  at: at.toISOString(),
  ...(by === undefined ? {} : { by }),
  ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
  ...(comment === undefined ? {} : { comment }),
})
