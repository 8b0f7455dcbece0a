import type { UserRef } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { escapeHtml } from '#kernel/html.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import type { Configuration } from '#sdk/module/configuration.ts'
import type { MailText } from '#sdk/notifier/mail.ts'
import { htmlOfText } from '#sdk/notifier/mail-body.ts'
import { approvalLinkKey, signApprovalLink } from '#sdk/workflow/approval-link.ts'

/** An approval as it will be stored: its id, and its version then (1 when it is opened). */
export interface LinkedApproval {
  readonly id: string
  readonly version: number
}

export interface ApprovalLinks {
  readonly approve: string
  readonly deny: string
}

export interface LinkOptions {
  /** The public URL of `filters.ApprovalLink`. */
  readonly url: string
  readonly expires: Date
  readonly keys: Pick<KeySource, 'secretKeys'>
}

/**
 * The two links with which one approver may decide one approval. They are valid until they expire, the approval is
 * decided, or it is assigned to others.
 */
export async function approvalLinks(
  { id, version }: LinkedApproval,
  { identity, login: approver }: UserRef,
  { url, expires, keys }: LinkOptions,
): Promise<ApprovalLinks> {
  const key = await approvalLinkKey(keys)
  const link = async (approve: boolean): Promise<string> => {
    const address = new URL(url)
    const claims = { approval: id, version, approver, identity, approve }
    address.searchParams.set('token', await signApprovalLink(claims, expires, key))
    return address.href
  }
  return { approve: await link(true), deny: await link(false) }
}

/** The mail with both links below its text. */
export function withApprovalLinks(mail: MailText, { approve, deny }: ApprovalLinks): MailText {
  const anchor = (address: string, label: string) => `<a href="${escapeHtml(address)}">${label}</a>`
  const links = `<p>${anchor(approve, 'Approve')} &nbsp; ${anchor(deny, 'Deny')}</p>`
  return {
    ...mail,
    text: `${mail.text.trimEnd()}\n\nApprove:\n${approve}\n\nDeny:\n${deny}\n`,
    html: endingWith(mail.html ?? htmlOfText(mail.text), links),
  }
}

/** The HTML with another part at the end of its body. */
export function endingWith(html: string, part: string): string {
  const end = html.search(/<\/body\s*>/i)
  return end < 0 ? html + part : html.slice(0, end) + part + html.slice(end)
}

/**
 * Creates the links of approval mails, to the first page of the configuration that handles them. Undefined without
 * such a page.
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
