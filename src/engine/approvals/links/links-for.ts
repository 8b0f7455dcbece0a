import { type ApprovalLinks, approvalLinks, type LinkedApproval } from '#engine/approvals/links/approval-links.ts'
import type { UserRef } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import type { Configuration } from '#sdk/module/configuration.ts'

/**
 * Makes the links of approval mails, to the first page of the configuration that answers them. They are undefined where
 * there is none.
 */
export function linksFor(
  { applications }: Pick<Configuration, 'applications'>,
  { keys, clock }: { readonly keys: Pick<KeySource, 'secretKeys'>; readonly clock: Clock },
): (approval: LinkedApproval, approver: UserRef) => Promise<ApprovalLinks | undefined> {
  const page = applications
    .flatMap(({ urls }) => urls)
    .flatMap(({ filters }) => filters)
    .find((filter) => filter.approvalLinks !== undefined)?.approvalLinks
  return async (approval, approver) => {
    if (page === undefined) return undefined
    const expires = new Date(clock().getTime() + page.validMillis)
    return approvalLinks(approval, approver, { url: page.url, expires, keys })
  }
}
