import type { RequestApproval, RequestDetails, RequestStep } from '#features/portal/contract/main-requests.ts'

/** An event of a request, or an approval that it waits for. */
export type TimelineEntry =
  | {
      readonly kind: 'submitted'
      readonly at: string
      readonly by: Pick<RequestDetails, 'requestor' | 'caller'>
      readonly until: string | undefined
    }
  | { readonly kind: 'step'; readonly at: string; readonly step: RequestStep }
  | { readonly kind: 'opened'; readonly at: string; readonly approval: RequestApproval }
  | { readonly kind: 'decided'; readonly at: string; readonly approval: RequestApproval }
  | { readonly kind: 'holding'; readonly at: string; readonly approval: RequestApproval }
  | { readonly kind: 'retry'; readonly at: string; readonly attempt: number }
  | {
      readonly kind: 'behind'
      readonly at: string
      readonly id: string | undefined
      readonly label: string | undefined
    }
  | {
      readonly kind: 'cancelled' | 'stopped'
      readonly at: string
      readonly by: string
      readonly reason: string | undefined
    }
  | { readonly kind: 'ended'; readonly at: string; readonly state: RequestDetails['state'] }

/** Steps that only branch or prepare, which are not interesting to users. */
const unseen: ReadonlySet<string> = new Set([
  'addAttribute',
  'addGroup',
  'mapping',
  'ifAttrExists',
  'ifAttrHasValue',
  'ifNotUserExists',
  'callWorkflow',
  'resync',
  'approval',
])

/** Someone else than its requester cancelled it. */
export const isStopped = ({ cancel, requestor, caller }: RequestDetails): boolean =>
  cancel !== undefined && ![requestor, caller].some((login) => login?.toLowerCase() === cancel.by.toLowerCase())

/** All entries in chronological order; pending ones come last. */
export function timelineOf(details: RequestDetails): readonly TimelineEntry[] {
  const happened: TimelineEntry[] = details.timeline
    .filter(({ taskType, outcome }) => !unseen.has(taskType) || outcome === 'failed')
    .map((step) => ({ kind: 'step', at: step.ended, step }))
  const awaited: TimelineEntry[] = []
  for (const approval of details.approvals) {
    // An approval that was cancelled with its request has no decision.
    if (approval.decision !== undefined && approval.status !== 'cancelled') {
      happened.push({ kind: 'opened', at: approval.opened, approval })
      happened.push({ kind: 'decided', at: approval.decision.at, approval })
    } else if (approval.status === 'open') {
      awaited.push({ kind: 'holding', at: approval.opened, approval })
    } else {
      happened.push({ kind: 'opened', at: approval.opened, approval })
    }
  }
  const { retry, behind } = details
  if (retry !== undefined) awaited.push({ kind: 'retry', ...retry })
  if (behind !== undefined) awaited.push({ kind: 'behind', at: details.updated, id: behind.id, label: behind.label })
  happened.sort((one, other) => Date.parse(one.at) - Date.parse(other.at))
  const end: TimelineEntry[] = []
  if (details.cancel !== undefined) {
    const { by, reason } = details.cancel
    end.push({ kind: isStopped(details) ? 'stopped' : 'cancelled', at: details.ended ?? details.updated, by, reason })
  } else if (details.ended !== undefined) {
    end.push({ kind: 'ended', at: details.ended, state: details.state })
  }
  const { created, requestor, caller, accessEnds } = details
  const by = { requestor, ...(caller === undefined ? {} : { caller }) }
  return [{ kind: 'submitted', at: created, by, until: accessEnds }, ...happened, ...awaited, ...end]
}
