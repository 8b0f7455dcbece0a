import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ClusterObject, ClusterResource } from '#protocols/kubernetes/cluster.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import rbacBinding from './rbac-binding.ts'

const binding = (kind: string, name: string, users: readonly string[]): ClusterObject => ({
  metadata: { name: 'b', uid: '1', resourceVersion: '1' },
  content: {
    roleRef: { kind, name },
    subjects: [...users.map((user) => ({ kind: 'User', name: user })), { kind: 'Group', name: 'eve@corp.test' }],
  },
})

const bindings: Readonly<Record<string, readonly ClusterObject[]>> = {
  clusterrolebindings: [
    binding('ClusterRole', 'admin', ['root@corp.test']),
    binding('ClusterRole', 'view', ['eve@corp.test']),
  ],
  'rolebindings shop': [
    binding('ClusterRole', 'admin', ['ada@corp.test', 'gone@corp.test']),
    binding('Role', 'admin', ['bob@corp.test']),
    { metadata: { name: 'c', uid: '2', resourceVersion: '1' }, content: { roleRef: { kind: 'Role', name: 'admin' } } },
  ],
}

const people = ['root', 'ada', 'bob', 'eve'].map((uid) => ({
  dn: Dn.parse(`uid=${uid},ou=users,ou=shadow,o=Tremolo`),
  attributes: Attributes.from({ uid: [uid], mail: [`${uid}@corp.test`] }),
}))

async function open(failure?: Error) {
  const issues = noIssues()
  const prepared = rbacBinding.prepare(fakeParams({}), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const list = async ({ plural, namespace }: ClusterResource) => {
    if (failure !== undefined) throw failure
    return bindings[namespace === undefined ? plural : `${plural} ${namespace}`] ?? []
  }
  const k8s = Object.assign(new MemoryTarget(), { objects: { list } })
  return prepared.create(fakeModuleHost({ entries: people, targets: { k8s, other: new MemoryTarget() } }))
}

const base = 'ou=users,ou=shadow,o=Tremolo'
const rule = (kind: string, name: string, ...namespace: string[]) => ['k8s', kind, name, 'mail', base, ...namespace]

async function allowed(params: readonly string[]): Promise<string[]> {
  const { isAuthorized, listPossibleApprovers } = await open()
  const found: string[] = []
  for (const { dn, attributes } of people) {
    const user = subject(dn.toString(), attributes.toObject())
    if (await isAuthorized(user, params)) found.push(user.uid)
  }
  const listed = await listPossibleApprovers?.(params)
  expect(listed?.toSorted()).toEqual(found.map((uid) => `uid=${uid},${base}`).toSorted())
  return found
}

test('allows the users whom bindings of the role name', async () => {
  expect(await allowed(rule('ClusterRole', 'admin', 'shop'))).toEqual(['ada'])
  expect(await allowed(rule('Role', 'admin', 'shop'))).toEqual(['bob'])
  expect(await allowed(rule('ClusterRole', 'admin'))).toEqual(['root'])
  expect(await allowed(rule('ClusterRole', 'edit', 'shop'))).toEqual([])
  expect(await allowed(rule('ClusterRole', 'admin', 'other'))).toEqual([])
})

test('users elsewhere in the directory, without the attribute or with an unverified address are not allowed', async () => {
  const { isAuthorized } = await open()
  const params = rule('ClusterRole', 'admin')
  const mail = ['root@corp.test']
  expect(await isAuthorized(subject('uid=root,ou=oidc,o=Tremolo', { mail }), params)).toBe(false)
  expect(await isAuthorized(subject(`uid=root,${base}`), params)).toBe(false)
  const claims = { ...subject(`uid=root,${base}`), attributes: Attributes.from({ mail }).claimed() }
  expect(await isAuthorized(claims, params)).toBe(false)
  const attributes = Attributes.from({ mail, email_verified: ['true'] }).claimed()
  expect(await isAuthorized({ ...claims, attributes }, params)).toBe(true)
})

test.each([
  [[]],
  [rule('ClusterRole', '')],
  [rule('Role', 'admin')],
  [rule('Group', 'admin')],
  [rule('ClusterRole', 'admin', '*')],
  [rule('ClusterRole', 'admin', '../x')],
  [rule('ClusterRole', 'admin', '')],
  [rule('ClusterRole', 'admin', 'shop', 'more')],
  [['other', ...rule('ClusterRole', 'admin').slice(1)]],
  [['k8s', 'ClusterRole', 'admin', 'mail', 'nonsense']],
])('a rule with the parameters %j cannot decide, which denies', async (params) => {
  const { isAuthorized, listPossibleApprovers } = await open()
  const user = subject(`uid=root,${base}`, { mail: ['root@corp.test'] })
  await expect((async () => isAuthorized(user, params))()).rejects.toThrow()
  await expect(listPossibleApprovers?.(params)).rejects.toThrow()
})

test('a cluster that does not answer is an error', async () => {
  const { isAuthorized } = await open(new GatewayError('TARGET_UNREACHABLE', 'no'))
  const user = subject(`uid=root,${base}`, { mail: ['root@corp.test'] })
  await expect(Promise.resolve(isAuthorized(user, rule('ClusterRole', 'admin')))).rejects.toMatchObject({
    code: 'TARGET_UNREACHABLE',
  })
})
