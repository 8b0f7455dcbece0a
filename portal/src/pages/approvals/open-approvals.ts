import type { InfiniteData } from '@tanstack/react-query'
import type { ApprovalList, ApprovalSummary } from '#contract/main-requests.ts'

type Pages = InfiniteData<ApprovalList, unknown>

/** Each once: somebody who may decide for two reasons gets it twice from older gateways. */
export function openApprovals(pages: Pages | undefined): readonly ApprovalSummary[] {
  const found = new Map<string, ApprovalSummary>()
  for (const { approvals } of pages?.pages ?? []) for (const one of approvals) found.set(one.approval, one)
  return [...found.values()]
}

/** The list as it is once these are decided. */
export const withoutApprovals = (pages: Pages, decided: ReadonlySet<string>): Pages => ({
  ...pages,
  pages: pages.pages.map((page) => ({
    ...page,
    approvals: page.approvals.filter(({ approval }) => !decided.has(approval)),
  })),
})

/** The workflows that approvals are about, by name, with their labels; and the chosen one, which may be about none of them. */
export const workflowsOf = (approvals: readonly ApprovalSummary[], chosen: string): ReadonlyMap<string, string> =>
  new Map([
    ...(chosen === '' ? [] : [[chosen, chosen] as const]),
    ...approvals.map(({ wfName, wfLabel }) => [wfName, wfLabel] as const),
  ])
