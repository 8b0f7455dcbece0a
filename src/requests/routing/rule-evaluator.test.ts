import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { DirectoryEntry, EntryDirectory } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { parseFilterTemplate } from '#identity/filter/filter-template.ts'
import { isNamedBy } from '#identity/member-url.ts'
import { GatewayError } from '#kernel/errors.ts'
import { Issues } from '#kernel/issues.ts'
import { silentLogger } from '#kernel/logger.ts'
import { storedSubject, storeSubject } from '#requests/sessions/stored-subject.ts'
import { claimAttributes, linkSubject } from '#sdk/login/linked-subject.ts'
import { parseRule, type Rule, type ruleScopes } from '#sdk/rule/rule.ts'
import { subject } from '#testing/login/subjects.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { RuleEvaluator } from './rule-evaluator.ts'

const dynamicGroup = Dn.parse('cn=paris,ou=groups,o=Tremolo')
const directory: EntryDirectory = {
  search: async ({ base }) =>
    base.equals(dynamicGroup)
      ? [
          directoryEntry({
            dn: base,
            attributes: Attributes.from({ memberURL: ['ldap:///ou=people,o=Tremolo??sub?(l=Paris)'] }),
          }),
        ]
      : [],
  isMember: async (group, member) =>
    group.equals(Dn.parse('cn=admins,o=Tremolo')) && member.equals(Dn.parse('uid=ada,ou=people,o=Tremolo')),
}
const authorizations = new Map([
  ['yes', { isAuthorized: (_: unknown, params: readonly string[]) => params[0] === 'please' }],
  ['broken', { isAuthorized: () => Promise.reject(new Error('database down')) }],
])
const evaluator = new RuleEvaluator(directory, authorizations, silentLogger)

function rule(scope: (typeof ruleScopes)[number], constraint: string): Rule {
  const issues = new Issues()
  const context = { refer() {}, mapper: () => undefined, folder: '.' }
  const parsed = parseRule(scope, constraint, [], issues, context)
  if (parsed === undefined) throw new Error(JSON.stringify(issues.list))
  return parsed
}

const ada = subject('uid=ada,ou=people,o=Tremolo', { mail: ['ada@corp.com'], l: ['Paris'] })
const allowed = async (...rules: Rule[]) => (await evaluator.decide(ada, rules)).allowed

describe('RuleEvaluator', () => {
  test('no rule denies', async () => {
    expect(await allowed()).toBe(false)
  })

  test('any rule is enough', async () => {
    expect(await allowed(rule('filter', '(mail=x)'), rule('dn', 'o=tremolo'))).toBe(true)
  })

  test('D25: dn compares names part by part, not as text', async () => {
    expect(await allowed(rule('dn', 'OU=People, o=Tremolo'))).toBe(true)
    expect(await allowed(rule('dn', 'ou=ople,o=Tremolo'))).toBe(false)
    expect(await allowed(rule('dn', 'uid=adam,ou=people,o=Tremolo'))).toBe(false)
  })

  test("dn accepts the subject's other names", async () => {
    const other = { ...ada, otherNames: [Dn.parse('username=ada,ou=oauth2,o=Tremolo')] }
    expect((await evaluator.decide(other, [rule('dn', 'username=ada,ou=oauth2,o=Tremolo')])).allowed).toBe(true)
  })

  test('D25: filter matches substrings literally and denies what is undefined', async () => {
    expect(await allowed(rule('filter', '(mail=*@corp.com)'))).toBe(true)
    expect(await allowed(rule('filter', '(mail=*@corp?com)'))).toBe(false)
    const other = { ...ada, attributes: Attributes.from({ mail: ['ada@corpXcom'] }) }
    expect((await evaluator.decide(other, [rule('filter', '(mail=*@corp.com)')])).allowed).toBe(false)
    expect(await allowed(rule('filter', '(!(title=boss))'))).toBe(false)
  })

  test('group and dynamicGroup query the directory', async () => {
    expect(await allowed(rule('group', 'cn=admins,o=Tremolo'))).toBe(true)
    expect(await allowed(rule('group', 'cn=others,o=Tremolo'))).toBe(false)
    expect(await allowed(rule('dynamicGroup', 'cn=paris,ou=groups,o=Tremolo'))).toBe(true)
    expect(await allowed(rule('dynamicGroup', 'cn=rome,ou=groups,o=Tremolo'))).toBe(false)
    const elsewhere = subject('uid=ada,ou=guests,o=Tremolo', { l: ['Paris'] })
    expect((await evaluator.decide(elsewhere, [rule('dynamicGroup', 'cn=paris,ou=groups,o=Tremolo')])).allowed).toBe(
      false,
    )
  })

  test("custom gets its parameters; one that can't decide does not pass, and says why", async () => {
    expect(await allowed(rule('custom', 'yes!please'))).toBe(true)
    expect(await allowed(rule('custom', 'yes!no'))).toBe(false)
    const [verdict] = await evaluator.explain(ada, [rule('custom', 'broken')])
    expect(verdict).toMatchObject({ passed: false, reason: 'cannot be evaluated: database down' })
    expect(await allowed(rule('custom', 'absent'))).toBe(false)
  })

  test('a system that does not answer is an error, unless another rule passes', async () => {
    const down = new GatewayError('TARGET_UNREACHABLE', 'the directory does not answer')
    const broken = { search: () => Promise.reject(down), isMember: () => Promise.reject(down) }
    const closed = new RuleEvaluator(broken, authorizations, silentLogger)
    for (const unknown of [rule('group', 'cn=admins,o=Tremolo'), rule('dynamicGroup', dynamicGroup.toString())]) {
      await expect(closed.decide(ada, [unknown, rule('filter', '(mail=x)')])).rejects.toBe(down)
      expect((await closed.decide(ada, [unknown, rule('dn', 'o=Tremolo')])).allowed).toBe(true)
      expect(await closed.explain(ada, [unknown])).toMatchObject([{ passed: false }])
    }
  })

  test('a dynamic group searches where its URL says', () => {
    const base = Dn.parse('ou=people,o=Tremolo')
    const covered = (scope: 'base' | 'one' | 'sub') =>
      ['ou=people,o=Tremolo', 'uid=ada,ou=people,o=Tremolo', 'uid=ada,ou=x,ou=people,o=Tremolo', 'o=Tremolo'].map(
        (name) => isNamedBy({ base, scope }, Dn.parse(name)),
      )
    expect(covered('base')).toEqual([true, false, false, false])
    expect(covered('one')).toEqual([false, true, false, false])
    expect(covered('sub')).toEqual([true, true, true, false])
  })

  test('claims of a token are compared with letter case; directory values are not', async () => {
    const token = claimAttributes({ sub: 'IDP', groups: ['Operators', 'x'], namespace: 'Team' }) ?? new Attributes()
    const link = { uidAttr: 'sub', noMatchOU: 'oauth2', objectClass: 'inetOrgPerson', acceptUnverifiedMail: false }
    const passes = async (entries: readonly DirectoryEntry[], scope: (typeof ruleScopes)[number], text: string) => {
      const lookup = entries.length === 0 ? undefined : parseFilterTemplate('(uid=${sub})')
      const outcome = await linkSubject(token, { ...link, lookup }, 'o=Tremolo', fakeModuleHost({ entries }))
      if (outcome.kind === 'refused') throw new Error(outcome.reason)
      const found = storedSubject.parse(storeSubject({ ...outcome.subject, level: 20, chain: 'test' }))
      if (found === undefined) throw new Error('the subject cannot be stored')
      return (await evaluator.decide(found, [rule(scope, text)])).allowed
    }
    for (const [scope, same, other] of [
      ['filter', '(sub=IDP)', '(sub=idp)'],
      ['filter', '(sub=I*)', '(sub=i*)'],
      ['filter', '(groups=Operators)', '(groups=operators)'],
      ['filter', '(namespace=Team)', '(namespace=team)'],
      ['filter', '(!(sub=idp))', '(!(sub=IDP))'],
      ['filter', '(SUB:caseIgnoreMatch:=idp)', '(sub:caseIgnoreMatch:=idpx)'],
      ['filter', '(sub:caseIgnoreSubstringsMatch:=i\\2a)', '(sub:caseExactMatch:=idp)'],
      ['filter', '(objectClass=INETORGPERSON)', '(objectClass=person)'],
      ['dn', 'SUB=IDP,OU=OAuth2,o=tremolo', 'sub=idp,ou=oauth2,o=Tremolo'],
      ['dn', 'ou=OAUTH2,o=Tremolo', 'sub= IDP x,ou=oauth2,o=Tremolo'],
    ] as const) {
      expect([same, await passes([], scope, same)]).toEqual([same, true])
      expect([other, await passes([], scope, other)]).toEqual([other, false])
    }
    const entry = directoryEntry({
      dn: Dn.parse('uid=IDP,ou=people,o=Tremolo'),
      attributes: Attributes.from({ uid: ['IDP'], groups: ['Staff'] }),
    })
    for (const [scope, text, expected] of [
      ['filter', '(uid=idp)', true],
      ['filter', '(groups=staff)', true],
      ['dn', 'uid=idp,ou=people,o=Tremolo', true],
      ['filter', '(namespace=team)', false],
      ['filter', '(sub=idp)', false],
      ['filter', '(sub=IDP)', true],
    ] as const) {
      expect([text, await passes([entry], scope, text)]).toEqual([text, expected])
    }
  })

  test('a group that lists another spelling of a claim does not contain its name', async () => {
    const group = Dn.parse('cn=partners,o=Tremolo')
    const partners: EntryDirectory = {
      search: async () => [
        directoryEntry({
          dn: group,
          attributes: Attributes.from({ member: ['not a name', 'sub=idp,ou=oauth2,o=Tremolo'] }),
        }),
      ],
      isMember: async (_, member) => member.key === Dn.parse('sub=idp,ou=oauth2,o=Tremolo').key,
    }
    const inGroup = async (name: string) => {
      const caller = { ...ada, dn: Dn.parse(name).claimed() }
      const rules = [rule('group', group.toString())]
      return (await new RuleEvaluator(partners, authorizations, silentLogger).decide(caller, rules)).allowed
    }
    expect(await inGroup('sub=idp,ou=oauth2,o=Tremolo')).toBe(true)
    expect(await inGroup('sub=IDP,ou=oauth2,o=Tremolo')).toBe(false)
  })
})
