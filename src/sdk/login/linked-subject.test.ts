import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { claimAttributes, linkParameters, linkSubject, parseSubjectLink } from './linked-subject.ts'

const root = directoryEntry({
  dn: Dn.parse('uid=root,ou=people,o=Tremolo'),
  attributes: Attributes.from({ uid: ['root'], mail: ['root@corp.test'] }),
})

function parse(extra: ParamValues) {
  const issues = noIssues()
  const params = fakeParams({ linkToDirectory: 'true', noMatchOU: 'outside', ...extra })
  const given = readParameters(linkParameters, params, issues, fakeParseContext())
  return { link: parseSubjectLink(given, params, issues), problems: issueTexts(issues.list) }
}

/** The user that the claims find, or why they find none. */
async function found(claims: Record<string, unknown>, extra: ParamValues = {}): Promise<string> {
  const { link } = parse({ lookupFilter: '(mail=${email})', ...extra })
  const attributes = claimAttributes({ sub: 'eve', ...claims })
  if (attributes === undefined) throw new Error('claims that differ in letter case only')
  const outcome = await linkSubject(attributes, link, 'o=Tremolo', fakeModuleHost({ entries: [root] }))
  return outcome.kind === 'refused' ? outcome.reason : outcome.subject.dn.toString()
}

const email = 'root@corp.test'
const linked = root.dn.toString()

describe('a lookup by mail', () => {
  test.each([true, 'true'])('finds the user whose address the issuer verified: %j', async (verified) => {
    expect(await found({ email, email_verified: verified })).toBe(linked)
  })

  test.each([undefined, false, 'false', 'TRUE', 1, '1', null, {}, [true, false]])(
    'is rejected if email_verified is %j',
    async (verified) => {
      expect(await found({ email, email_verified: verified })).toContain('"email" is not verified')
    },
  )

  test.each([['(|(uid=${sub})(mail=${email}))'], ['(&(objectClass=*)(mail=x${EMAIL}))'], ['(!(mail=${Mail}))']])(
    'is detected wherever the filter reads the address: %s',
    async (lookupFilter) => {
      expect(await found({ email, mail: email }, { lookupFilter })).toContain('is not verified')
    },
  )

  test('email_verified is about email, not about another address in mail', async () => {
    const lookupFilter = '(mail=${mail})'
    expect(await found({ email: 'eve@evil.test', email_verified: true, mail: email }, { lookupFilter })).toContain(
      'another address',
    )
    expect(await found({ email: 'ROOT@corp.test', email_verified: true, mail: email }, { lookupFilter })).toBe(linked)
    expect(await found({ email_verified: true, mail: email }, { lookupFilter })).toBe(linked)
    expect(await found({ email, email_verified: true, mail: 'eve@evil.test' })).toBe(linked)
  })

  test.each([
    'mail',
    'MAIL',
    'email',
    'emails',
    'emails.value',
    'mail;lang-en',
    'mailAlternateAddress',
    'rfc822Mailbox',
    'proxyAddresses',
    '0.9.2342.19200300.100.1.3',
  ])('is detected if the filter compares %s with any claim', async (attribute) => {
    const lookupFilter = `(|(uid=none)(${attribute}=\${preferred_username}))`
    const claims = { preferred_username: email }
    expect(await found(claims, { lookupFilter })).toContain('"preferred_username" is not verified')
    expect(await found({ ...claims, email_verified: false, email }, { lookupFilter })).toContain('is not verified')
  })

  test('email_verified is about email, not about an address in another claim', async () => {
    const lookupFilter = '(mail=${preferred_username})'
    const claims = { preferred_username: email, email_verified: true }
    expect(await found(claims, { lookupFilter })).toContain('another address')
    expect(await found({ ...claims, email: 'eve@evil.test' }, { lookupFilter })).toContain('another address')
    expect(await found({ ...claims, email: 'Root@corp.test' }, { lookupFilter })).toBe(linked)
    const accepting = { lookupFilter, acceptUnverifiedMail: 'true' }
    expect(await found({ preferred_username: email }, accepting)).toBe(linked)
    expect(parse(accepting).problems).toEqual([expect.stringContaining('can choose a mail address')])
  })

  test('is not assumed if the filter compares mail with a fixed value only', async () => {
    expect(await found({ sub: 'root' }, { lookupFilter: '(&(mail=*@corp.test)(uid=${sub}))' })).toBe(linked)
  })

  test('another spelling of email_verified is ignored', async () => {
    expect(await found({ email, Email_Verified: true })).toContain('is not verified')
  })

  test('accepts any address if the operator configures it, and check warns', async () => {
    const accepting = { lookupFilter: '(mail=${email})', acceptUnverifiedMail: 'true' }
    expect(await found({ email }, accepting)).toBe(linked)
    expect(parse(accepting).problems).toEqual([expect.stringContaining('can choose a mail address')])
    expect(parse({ ...accepting, lookupFilter: '(uid=${sub})' }).problems).toEqual([])
    expect(parse({ lookupFilter: '(mail=${email})' }).problems).toEqual([])
  })
})

test('other claims need no verified address', async () => {
  expect(await found({ sub: 'root', email }, { lookupFilter: '(uid=${sub})' })).toBe(linked)
})
