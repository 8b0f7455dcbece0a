import type { ApprovalSummary } from '#contract/main-requests.ts'

/** What is asked for would have ended already: it can be denied, and nothing else. */
export const hasEnded = ({ accessEnds }: Pick<ApprovalSummary, 'accessEnds'>, now: number): boolean =>
  accessEnds !== undefined && Date.parse(accessEnds) <= now
