import type { DecisionView } from '#contract/main-requests.ts'
import type { Approval } from '#domain/approval.ts'

export const decisionView = ({ at, by, onBehalfOf, comment }: NonNullable<Approval['decision']>): DecisionView => ({
  at: at.toISOString(),
  ...(by === undefined ? {} : { by: by.login }),
  ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
  ...(comment === undefined ? {} : { comment }),
})
