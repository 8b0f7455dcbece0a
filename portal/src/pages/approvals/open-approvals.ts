import type { InfiniteData } from '@tanstack/react-query'
import type { ApprovalList, ApprovalSummary } from '#features/portal/contract/main-requests.ts'

type Pages = InfiniteData<ApprovalList, unknown>

/** Each once: older gateways return an approval twice if the user may decide it for two reasons. */
export function openApprovals(pages: Pages | undefined): readonly ApprovalSummary[] {
  const found = new Map<string, ApprovalSummary>()
  for (const { approvals } of pages?.pages ?? []) for (const one of approvals) found.set(one.approval, one)
  return [...found.values()]
}

/** The list without the decided approvals. */
export const withoutApprovals = (pages: Pages, decided: ReadonlySet<string>): Pages => ({
  ...pages,
  pages: pages.pages.map((page) => ({
    ...page,
    approvals: page.approvals.filter(({ approval }) => !decided.has(approval)),
  })),
})

/** The workflows of the approvals, by name, with their labels; and the chosen one, which may have no approvals. */
export const workflowsOf = (approvals: readonly ApprovalSummary[], chosen: string): ReadonlyMap<string, string> =>
  new Map([
    ...(chosen === '' ? [] : [[chosen, chosen] as const]),
    ...approvals.map(({ wfName, wfLabel }) => [wfName, wfLabel] as const),
  ])
