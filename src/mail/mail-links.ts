import type { Configuration } from '#config/configuration/configuration.ts'
import { escapeHtml } from '#kernel/text/html.ts'
import type { MailText } from '#sdk/mail/mail.ts'
import { htmlOfText } from '#sdk/mail/mail-body.ts'
import type { MailLink } from '#sdk/mail/new-mail.ts'
import type { Texts } from '#sdk/page/page-texts.ts'

/** Links to pages of the portal. Their address comes from the configuration, never from a request. */
export interface PortalLinks {
  approval(id: string, texts: Texts): MailLink
  request(run: string, texts: Texts): MailLink
  access(texts: Texts): MailLink
  notificationSettings(texts: Texts): MailLink
}

/** The address of the first portal of the configuration that has one, without a slash at its end. */
export const portalAddress = (applications: Configuration['applications']): string | undefined =>
  applications
    .flatMap(({ urls }) => urls)
    .flatMap(({ filters }) => filters)
    .find((filter) => filter.portalUrl !== undefined)?.portalUrl

/** The pages of that portal. Undefined without one. */
export function portalLinks(applications: Configuration['applications']): PortalLinks | undefined {
  const base = portalAddress(applications)
  if (base === undefined) return undefined
  const page = (texts: Texts, ...path: readonly string[]): MailLink => ({
    label: texts('mail.open'),
    url: [base, ...path.map(encodeURIComponent)].join('/'),
  })
  return {
    approval: (id, texts) => page(texts, 'approvals', id),
    request: (run, texts) => page(texts, 'requests', run),
    access: (texts) => page(texts, 'access'),
    notificationSettings: (texts) => page(texts, 'notifications', 'settings'),
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

/** The mail with sentences below its text, in both forms. */
export function withSentences<M extends MailText>(mail: M, sentences: readonly string[]): M {
  if (sentences.length === 0) return mail
  return {
    ...mail,
    text: [mail.text.trimEnd(), ...sentences].join('\n\n').concat('\n'),
    ...(mail.html && {
      html: endingWith(mail.html, sentences.map((sentence) => `<p>${escapeHtml(sentence)}</p>`).join('')),
    }),
  }
}

/** The HTML with another part at the end of its body. */
function endingWith(html: string, part: string): string {
  const end = html.search(/<\/body\s*>/i)
  return end < 0 ? html + part : html.slice(0, end) + part + html.slice(end)
}
