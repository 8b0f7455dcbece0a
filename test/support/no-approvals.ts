import type { ApprovalAccess } from '#sdk/workflow/approvals.ts'

const absent = async (): Promise<never> => {
  throw new Error('no approvals in this test')
}

/** For modules that must not use approvals. */
export const noApprovals: ApprovalAccess = {
  ofRun: absent,
  list: absent,
  get: absent,
  preview: absent,
  existing: absent,
  decide: absent,
  delegate: absent,
  delegations: absent,
  endDelegation: absent,
  represents: absent,
}
