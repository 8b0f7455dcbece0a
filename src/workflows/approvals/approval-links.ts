import type { Configuration } from '#config/configuration/configuration.ts'
import type { UserRef } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { portalLinks } from '#mail/mail-links.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import type { MailLink } from '#sdk/mail/new-mail.ts'
import type { Texts } from '#sdk/page/page-texts.ts'
import { approvalLinkKey, offersApprovalLinks, signApprovalLink } from './approval-link.ts'

/** An approval as it will be stored: its id, and its version then (1 when it is opened). */
export interface LinkedApproval {
  readonly id: string
  readonly version: number
}

interface ApprovalLinks {
  readonly approve: string
  readonly deny: string
}

interface LinkOptions {
  /** The public URL of `filters.ApprovalLink`. */
  readonly url: string
  readonly expires: Date
  readonly keys: Pick<KeySource, 'secretKeys'>
}

/**
 * The two links with which one approver may decide one approval; without an approver, every approver who logs in. They
 * are valid until they expire, the approval is decided, or it is assigned to others.
 */
export async function approvalLinks(
  { id, version }: LinkedApproval,
  approver: UserRef | undefined,
  { url, expires, keys }: LinkOptions,
): Promise<ApprovalLinks> {
  const key = await approvalLinkKey(keys)
  const person = approver && { approver: approver.login, identity: approver.identity }
  const link = async (approve: boolean): Promise<string> => {
    const address = new URL(url)
    const claims = { approval: id, version, ...person, approve }
    address.searchParams.set('token', await signApprovalLink(claims, expires, key))
    return address.href
  }
  return { approve: await link(true), deny: await link(false) }
}

/** The links of a message about an approval: of one approver, or without one of a channel that several people read. */
export type LinksFor = (
  approval: LinkedApproval,
  approver: UserRef | undefined,
  texts: Texts,
) => Promise<readonly MailLink[]>

/**
 * Creates the links of messages about approvals: to the first page of the configuration that decides, and to the
 * approval in the portal. A page that decides without a login gets no links for channels.
 */
export function linksFor(
  { applications }: Pick<Configuration, 'applications'>,
  { keys, clock }: { readonly keys: Pick<KeySource, 'secretKeys'>; readonly clock: Clock },
): LinksFor {
  const page = applications
    .flatMap(({ urls }) => urls)
    .flatMap(({ filters }) => filters)
    .find(offersApprovalLinks)?.approvalLinks
  const portal = portalLinks(applications)
  return async (approval, approver, texts) => {
    const others = portal === undefined ? [] : [portal.approval(approval.id, texts)]
    if (page === undefined || (approver === undefined && page.withoutLogin)) return others
    const expires = new Date(clock().getTime() + page.validMillis)
    const { approve, deny } = await approvalLinks(approval, approver, { url: page.url, expires, keys })
    return [
      { label: texts('decide.approve'), url: approve, style: 'primary' },
      { label: texts('decide.deny'), url: deny, style: 'danger' },
      ...others,
    ]
  }
}
