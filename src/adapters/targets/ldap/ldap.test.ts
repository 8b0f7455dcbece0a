import { expect, test } from 'vitest'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { ldap, ldapParameters, parseLdapTarget } from './ldap.ts'

const least: ParamValues = {
  host: 'ldap.example.com',
  searchBase: 'dc=example,dc=com',
  objectClass: 'inetOrgPerson',
  dnPattern: 'uid=${uid},dc=example,dc=com',
}
const dialect = {
  login: 'uid',
  id: 'entryUUID',
  groupClass: 'groupOfUniqueNames',
  memberOf: undefined,
  passwords: 'modify',
  times: { created: 'createTimestamp', modified: 'modifyTimestamp' },
} as const
const table = ldapParameters(dialect)

function read(given: ParamValues, without: readonly string[] = []) {
  const issues = noIssues()
  const all = Object.fromEntries(Object.entries({ ...least, ...given }).filter(([name]) => !without.includes(name)))
  const params = fakeParams(all, ['adminPasswd'])
  const config = parseLdapTarget(table, params, issues, fakeParseContext('/configuration'), dialect)
  return { ...config, issues: issueTexts(issues.list) }
}

test('OpenUnison’s parameters keep their meaning', () => {
  const { connection, layout, issues } = read({
    port: '636',
    useSSL: 'true',
    adminDN: 'cn=admin,dc=example,dc=com',
    adminPasswd: 'secret',
    userIDAttribute: 'uid',
    maxCons: '7',
    threadIdleTimeout: '3000',
    isExternal: 'false',
    createShadowAccounts: 'false',
    supportExternalUsers: 'false',
  })
  expect(issues).toEqual([])
  expect(connection).toMatchObject({ url: 'ldaps://ldap.example.com:636', maxConnections: 7, idleMillis: 3000 })
  expect(layout.groups).toMatchObject({ member: 'uniqueMember', name: 'cn', membersAreLogins: false })
  expect(layout.groups.base.toString()).toBe('dc=example,dc=com')
  expect(layout.groups.placeholder?.toString()).toBe('cn=nobody')
})

test('the URL can be given in one way only', () => {
  const address = (given: ParamValues, without: string[] = []) => read(given, without).connection.url
  expect(address({})).toBe('ldap://ldap.example.com')
  expect(address({ host: '::1', port: '1389' })).toBe('ldap://[::1]:1389')
  expect(address({ url: 'ldaps://x.test:1636' }, ['host'])).toBe('ldaps://x.test:1636')
  expect(read({ url: 'ldap://x.test' }).issues).toEqual(['error params.host: "host" cannot be given beside "url"'])
  expect(read({}, ['host']).issues).toEqual(['error params.url: "url" or "host" is required'])
  for (const url of ['http://x', 'ldap://', 'ldap://u:p@x', 'ldap://x/dc=a', 'ldap://x?a', 'x']) {
    expect(read({ url }, ['host']).issues).toEqual([
      expect.stringMatching(/^error params\.url\.0: "url": must be ldap/),
    ])
  }
  expect(read({ host: 'a/b' }).issues).toEqual([expect.stringMatching(/^error params\.host/)])
})

test('contradictory parameters are reported, without secrets', () => {
  expect(read({ adminDN: 'cn=a' }).issues).toEqual([expect.stringMatching(/^error params\.adminPasswd/)])
  expect(read({ adminPasswd: 'secret' }).issues[0]).toMatch(/^error params\.adminDN/)
  const open = read({ adminDN: 'cn=a', adminPasswd: 'hunter2' }).issues
  expect(open).toEqual([expect.stringMatching(/^warning params\.adminPasswd: .*unencrypted/)])
  expect(open.join()).not.toContain('hunter2')
  expect(read({ adminDN: 'cn=a', adminPasswd: 'x', startTls: 'true' }).issues).toEqual([])
  expect(read({ useSSL: 'true', startTls: 'true' }).issues).toEqual([expect.stringMatching(/^error params\.startTls/)])
  expect(read({ caFile: 'a.pem', certificate: 'x' }).issues).toEqual([expect.stringMatching(/^error params\.cert/)])
  for (const name of ['isExternal', 'createShadowAccounts', 'supportExternalUsers']) {
    expect(read({ [name]: 'true' }).issues).toEqual([expect.stringMatching(/not supported/)])
  }
  expect(read({ dnPattern: 'ou=people' }).issues).toEqual([expect.stringMatching(/^error params\.dnPattern/)])
  expect(read({ searchBase: 'people' }).issues).toEqual([expect.stringMatching(/^error params\.searchBase/)])
  expect(read({ userIDAttribute: 'u)(id' }).issues).toEqual([expect.stringMatching(/^error params\.userIDAttribute/)])
  expect(read({ 'default.a b': 'x' }).issues).toHaveLength(1)
})

test('the class of a group, or the parameter, decides its member attribute', () => {
  const member = (given: ParamValues) => {
    const { groups } = read(given).layout
    return [groups.member, groups.membersAreLogins, groups.placeholder !== undefined]
  }
  expect(member({ groupObjectClass: 'groupOfNames' })).toEqual(['member', false, true])
  expect(member({ groupObjectClass: 'posixGroup' })).toEqual(['memberUid', true, false])
  expect(member({ groupObjectClass: 'group' })).toEqual(['member', false, false])
  expect(member({ groupObjectClass: 'device', memberAttribute: 'MemberUID' })).toEqual(['MemberUID', true, false])
})

test("an unreachable server does not prevent the target's creation", async () => {
  const given = { ...least, host: '127.0.0.1', port: '1' }
  const target = await ldap.prepare(fakeParams(given), noIssues(), fakeParseContext()).create(fakeModuleHost())
  await target.close?.()
})

test('each attribute name maps to one attribute of the server', () => {
  const { names, issues } = read({ 'attribute.name.familyName': 'sn', 'groupAttribute.externalId': 'businessCategory' })
  expect(issues).toEqual([])
  expect([names.users.toServer('NAME.familyName'), names.users.toOurs('SN')]).toEqual(['sn', 'name.familyName'])
  expect([names.users.toServer('mail'), names.groups.toServer('externalId')]).toEqual(['mail', 'businessCategory'])
  const wrong = read({
    'attribute.a': 'x)(uid=*',
    'attribute.b': 'sn',
    'attribute.c': 'SN',
    'attribute.Groups': 'ou',
    'groupAttribute.members': 'ou',
  })
  expect(wrong.issues).toEqual([
    expect.stringContaining('cannot be an attribute'),
    expect.stringContaining("is another one's name already"),
    expect.stringContaining('has a name that is in use'),
    expect.stringContaining('has a name that is in use'),
  ])
})
