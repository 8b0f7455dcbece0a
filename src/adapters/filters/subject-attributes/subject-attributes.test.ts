import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { ownIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import type { FilterModule } from '#sdk/filter/filter.ts'
import { fakeDirectory } from '#testing/login/fake-directory.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import {
  anonAz,
  clusterGroups2Attribute,
  dnBase2Attribute,
  group2Attribute,
  groups2Attribute,
} from './subject-attributes.ts'

const group = (cn: string, ...members: string[]) => ({
  dn: Dn.parse(`cn=${cn},ou=groups,o=Tremolo`),
  attributes: Attributes.from({ cn: [cn], uniqueMember: members }),
})
const ada = 'uid=ada,ou=people,o=Tremolo'
const entries = [group('groups-admins', ada), group('groups-staff', ada), group('others', ada), group('groups-empty')]
const found = fakeModuleHost({ entries, targets: { 'k8s-blue': Object.assign(new MemoryTarget(), { objects: {} }) } })
const host = {
  ...found,
  directory: fakeDirectory({
    search: (search) => found.directory.search(search),
    isMember: async (name, member) => name.toString() === 'cn=staticgroup,o=Tremolo' && member.toString() === ada,
  }),
}

function prepare(module: FilterModule, params: ParamValues) {
  const issues = noIssues()
  const prepared = module.prepare(fakeParams(params), issues, fakeParseContext())
  return { prepared, problems: issueTexts(issues.list) }
}

/** What the next filter sees, and what an identity provider makes claims of: both are the same. */
async function changed(module: FilterModule, params: ParamValues, caller: Subject): Promise<Subject> {
  const { prepared, problems } = prepare(module, params)
  expect(problems).toEqual([])
  const filter = await prepared.create(host)
  const exchange = { request: fakeRequest({}), application: 'app', mount: '/app', pathInfo: '', subject: caller }
  const seen: Subject[] = []
  const answer = await filter.handle(exchange, async (next = caller) => {
    seen.push(next)
    return { status: 204, headers: {} }
  })
  const [result] = seen
  if (result === undefined || seen.length > 1) throw new Error('next was not called once')
  const change = await prepared.subjectFilter?.create(host)
  expect([prepared.answers, answer.status, await change?.(caller)]).toEqual([false, 204, result])
  return result
}

const rolesOf = async (module: FilterModule, params: ParamValues, caller: Subject) =>
  (await changed(module, params, caller)).attributes.values('roles')

describe('filters.Group2Attribute', () => {
  const documented = { attributeName: 'roles', attributeValue: 'admin', groupDN: 'cn=staticgroup,o=Tremolo' }

  test('adds the value for members only, and never twice', async () => {
    expect(await rolesOf(group2Attribute, documented, subject(ada))).toEqual(['admin'])
    expect(await rolesOf(group2Attribute, documented, subject(ada, { roles: ['dev'] }))).toEqual(['dev', 'admin'])
    expect(await rolesOf(group2Attribute, documented, subject(ada, { roles: ['admin'] }))).toEqual(['admin'])
    expect(await rolesOf(group2Attribute, documented, subject('uid=eve,o=Tremolo'))).toEqual([])
  })

  test('a name that an issuer chose is not the name of a member', async () => {
    const claimed = { ...subject(ada), dn: Dn.parse(ada).claimed() }
    expect(await rolesOf(group2Attribute, documented, claimed)).toEqual([])
    expect(await rolesOf(group2Attribute, documented, { ...claimed, otherNames: [Dn.parse(ada)] })).toEqual(['admin'])
  })

  test('leaves the subject of other filters as it is', async () => {
    const caller = subject(ada)
    await changed(group2Attribute, documented, caller)
    expect(caller.attributes.has('roles')).toBe(false)
  })

  test('reports invalid parameters', () => {
    expect(prepare(group2Attribute, {}).problems).toHaveLength(3)
    expect(prepare(group2Attribute, { ...documented, groupDN: 'admins' }).problems).toHaveLength(1)
  })
})

test('filters.DNBase2Attribute adds the value for users at or below the place', async () => {
  const documented = { attributeName: 'roles', attributeValue: 'admin', dn: 'cn=Users,ou=MyEnterprise,O=Tremolo' }
  const roles = (dn: string) => rolesOf(dnBase2Attribute, documented, subject(dn))
  expect(await roles('uid=ada,cn=users,ou=MyEnterprise,o=Tremolo')).toEqual(['admin'])
  expect(await roles('uid=ada,ou=MyEnterprise,o=Tremolo')).toEqual([])
  expect(await roles('uid=x\\,cn\\=Users,ou=MyEnterprise,o=Tremolo')).toEqual([])
})

describe('filters.Groups2Attribute', () => {
  const documented = { base: 'o=Tremolo', attrName: 'roles', pattern: 'groups-(.*)', groupNum: '1' }

  test('adds the names of the groups, or a part of them', async () => {
    expect(await rolesOf(groups2Attribute, documented, subject(ada))).toEqual(['admins', 'staff'])
    const whole = { base: 'o=Tremolo', attrName: 'roles' }
    expect(await rolesOf(groups2Attribute, whole, subject(ada))).toEqual(['groups-admins', 'groups-staff', 'others'])
    expect(await rolesOf(groups2Attribute, { ...whole, base: 'ou=elsewhere' }, subject(ada))).toEqual([])
    expect(await rolesOf(groups2Attribute, documented, subject('uid=eve,o=Tremolo'))).toEqual([])
  })

  test('reports a pattern that cannot be used, and a group that it does not have', () => {
    expect(prepare(groups2Attribute, { ...documented, pattern: '(a)\\1' }).problems.length).toBeGreaterThan(0)
    expect(prepare(groups2Attribute, { ...documented, groupNum: '2' }).problems).toEqual([
      'error params.groupNum: "groupNum": the pattern has 1 group, not 2',
    ])
  })
})

test('filters.ClusterGroups2Attribute adds the groups that count in the cluster', async () => {
  const groups = ['staff', 'k8s-cluster-k8s-blue-admins', 'k8s-cluster-k8s-green-admins']
  const caller = { ...subject(ada), attributes: Attributes.from({ groups }).claimed() }
  const { attributes } = await changed(clusterGroups2Attribute, { clusterName: 'blue' }, caller)
  expect(attributes.values('groups-k8s-blue')).toEqual(['staff', 'k8s-cluster-k8s-blue-admins'])
  expect(attributes.isClaim('groups-k8s-blue')).toBe(true)
})

describe('filters.AnonAz', () => {
  const documented = { userName: 'cn=Guest' }
  const anonymous: Subject = {
    ...subject('uid=Anonymous,o=Tremolo', { uid: ['Anonymous'] }, 0),
    identity: ownIdentity('anonymous'),
  }

  test('renames a caller without a login, who stays at level 0', async () => {
    const result = await changed(anonAz, documented, anonymous)
    expect([result.dn.toString(), result.uid, result.level]).toEqual(['cn=Guest,o=Tremolo', 'Guest', 0])
    expect(result.attributes.toObject()).toEqual({ cn: ['Guest'] })
    expect(result.identity).toBe(anonymous.identity)
  })

  test('leaves users who are logged in alone', async () => {
    const caller = subject(ada)
    expect(await changed(anonAz, documented, caller)).toBe(caller)
  })

  test('takes one name', () => {
    expect(prepare(anonAz, {}).problems).toHaveLength(1)
    for (const userName of ['Anonymous', 'uid=a,ou=b', 'uid=a+cn=b']) {
      expect(prepare(anonAz, { userName }).problems).toHaveLength(1)
    }
  })
})
