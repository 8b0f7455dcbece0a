import type { MailLink } from '#domain/mail.ts'
import { escapeHtml } from '#kernel/html.ts'
import type { Configuration } from '#sdk/module/configuration.ts'
import type { MailText } from '#sdk/notifier/mail.ts'
import { htmlOfText } from '#sdk/notifier/mail-body.ts'

/** Links to pages of the portal. Their address comes from the configuration, never from a request. */
export interface PortalLinks {
  approval(id: string): MailLink
  request(run: string): MailLink
  access(): MailLink
  notificationSettings(): MailLink
}

/** The pages of the first portal of the configuration that has an address. Undefined without one. */
export function portalLinks(applications: Configuration['applications']): PortalLinks | undefined {
  const base = applications
    .flatMap(({ urls }) => urls)
    .flatMap(({ filters }) => filters)
    .find((filter) => filter.portalUrl !== undefined)?.portalUrl
  if (base === undefined) return undefined
  const page = (...path: readonly string[]): MailLink => ({
    label: 'Open in the portal',
    url: [base, ...path.map(encodeURIComponent)].join('/'),
  })
  return {
    approval: (id) => page('approvals', id),
    request: (run) => page('requests', run),
    access: () => page('access'),
    notificationSettings: () => page('notifications', 'settings'),
  }
}

/** The mail with the links below its text, in both forms. Links that the text has already are not repeated. */
export function withLinks<M extends MailText>(mail: M, links: readonly MailLink[]): M {
  const added = links.filter(({ url }) => !mail.text.includes(url))
  if (added.length === 0) return mail
  const anchors = added.map(({ label, url }) => `<a href="${escapeHtml(url)}">${escapeHtml(label)}</a>`)
  return {
    ...mail,
    text: [mail.text.trimEnd(), ...added.map(({ label, url }) => `${label}:\n${url}`)].join('\n\n').concat('\n'),
    html: endingWith(mail.html ?? htmlOfText(mail.text), `<p>${anchors.join(' &nbsp; ')}</p>`),
  }
}

/** The HTML with another part at the end of its body. */
export function endingWith(html: string, part: string): string {
  const end = html.search(/<\/body\s*>/i)
  return end < 0 ? html + part : html.slice(0, end) + part + html.slice(end)
}
