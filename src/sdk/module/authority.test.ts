import { expect, test } from 'vitest'
import ldapInsert from '#adapters/directory-inserts/ldap/ldap.ts'
import smtp from '#adapters/notifiers/smtp/smtp.ts'
import { activeDirectory, ldap } from '#adapters/targets/ldap/ldap.ts'
import scim from '#adapters/targets/scim/scim.ts'
import webhook from '#adapters/targets/webhook/webhook.ts'
import { Dn } from '#identity/dn.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { crmParams } from '#testing/targets/crm-application.ts'

const branch = { host: 'ldap.example.com', searchBase: 'dc=example,dc=com' }
const accounts = { ...branch, objectClass: 'inetOrgPerson', dnPattern: 'uid=${uid},dc=example,dc=com' }
const host = { ...fakeModuleHost(), suffix: Dn.parse('dc=example,dc=com') }

test.each([
  ['targets.Ldap', ldap, accounts],
  ['targets.ActiveDirectory', activeDirectory, accounts],
  ['targets.Scim', scim, { url: 'https://scim.example.com', token: 't' }],
  ['targets.Webhook', webhook, crmParams({ url: 'https://api.example.com' })],
  ['directory.Ldap', ldapInsert, branch],
  ['notifiers.Smtp', smtp, { host: 'mail.example.com', from: 'a@example.com' }],
] as const)('%s is not created with an authority that cannot be read', async (_, module, given) => {
  const issues = noIssues()
  const params = fakeParams({ ...given, caFile: 'missing.pem' })
  const prepared = module.prepare(params, issues, fakeParseContext('/nowhere'))
  expect(issueTexts(issues.list).filter((text) => text.startsWith('error'))).toEqual([])
  const created = prepared.create(host)
  await expect(created).rejects.toThrow('the certificate authority in /nowhere/missing.pem cannot be read')
})
