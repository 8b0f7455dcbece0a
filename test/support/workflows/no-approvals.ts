import type { ApprovalAccess } from '#workflows/approvals/approval-access.ts'

const absent = async (): Promise<never> => {
  throw new Error('no approvals in this test')
}

/** For modules that must not use approvals. */
export const noApprovals: ApprovalAccess = {
  ofRun: absent,
  listOpen: absent,
  assign: absent,
  appoint: absent,
  list: absent,
  decided: absent,
  get: absent,
  preview: absent,
  existing: absent,
  decide: absent,
  reassign: absent,
  ask: absent,
  answer: absent,
  messagesOf: absent,
  latestMessages: absent,
  decisionMillis: absent,
  delegate: absent,
  delegations: absent,
  endDelegation: absent,
  represents: absent,
}
