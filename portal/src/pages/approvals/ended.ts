import type { ApprovalSummary } from '#features/portal/contract/main-requests.ts'

/** The requested access would have expired already: the request can only be denied. */
export const hasEnded = ({ accessEnds }: Pick<ApprovalSummary, 'accessEnds'>, now: number): boolean =>
  accessEnds !== undefined && Date.parse(accessEnds) <= now
