import type { RunHead } from '#sdk/workflow/run-head.ts'

/** A head by the names that the APIs and the command line have for its fields. */
export const wireHead = ({ workflow: name, requester: requestor, who, ...head }: RunHead) => ({
  ...head,
  name,
  requestor,
  who: { requestor: who.requester, caller: who.caller, subject: who.subject },
})
