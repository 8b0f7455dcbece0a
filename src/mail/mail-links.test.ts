import { describe, expect, test } from 'vitest'
import type { Configuration } from '#config/configuration/configuration.ts'
import type { MailText } from '#sdk/mail/mail.ts'
import { textsIn } from '#sdk/page/page-texts.ts'
import { portalLinks, withLinks } from './mail-links.ts'

const links = [
  { label: 'Approve', url: 'https://x.test/?a=1&b=2' },
  { label: 'Open <it>', url: 'https://x.test/2' },
]

describe('a mail with links', () => {
  test('has them in both forms, and escapes the existing text once', () => {
    const mail = withLinks<MailText>({ subject: 's', text: 'Is <this> fine?\n' }, links)
    expect(mail.text).toBe('Is <this> fine?\n\nApprove:\nhttps://x.test/?a=1&b=2\n\nOpen <it>:\nhttps://x.test/2\n')
    expect(mail.html).toContain('Is &lt;this&gt; fine?')
    expect(mail.html).toContain('<a href="https://x.test/?a=1&amp;b=2">Approve</a>')
    expect(mail.html).toContain('>Open &lt;it&gt;</a>')
  })

  test('has them inside the body of a whole document', () => {
    const mail = { subject: 's', text: 't', html: '<html><body>t</body></html>', notifier: 'n' }
    const linked = withLinks(mail, links)
    expect(linked.html).toMatch(/<body>t<p>.*<\/a><\/p><\/body><\/html>$/)
    expect(linked.notifier).toBe('n')
  })

  test('does not repeat a link of its template', () => {
    const mail = { subject: 's', text: 'See https://x.test/2 for more.' }
    expect(withLinks(mail, links.slice(1))).toBe(mail)
    expect(withLinks(mail, [])).toBe(mail)
  })
})

test('links to the portal have the configured address, and names from outside stay within their part', () => {
  const urls = [{ filters: [{}] }, { filters: [{ portalUrl: 'https://gate.test/portal' }] }]
  const applications = [{ urls }] as unknown as Configuration['applications']
  const portal = portalLinks(applications)
  expect(portal?.request('../x?y', textsIn('en')).url).toBe('https://gate.test/portal/requests/..%2Fx%3Fy')
  const url = 'https://gate.test/portal/approvals/a-1'
  expect(portal?.approval('a-1', textsIn('de'))).toEqual({ label: 'Im Portal öffnen', url })
  expect(portalLinks([])).toBeUndefined()
})
