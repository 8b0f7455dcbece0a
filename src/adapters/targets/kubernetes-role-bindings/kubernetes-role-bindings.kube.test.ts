import { expect, test } from 'vitest'
import kubernetes from '#adapters/targets/kubernetes/kubernetes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { SearchQuery } from '#identity/search.ts'
import { syncOptions, targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasLookups, type LookupTarget, type TargetChange, type TargetRequest } from '#sdk/target/target.ts'
import { callMillis, trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { hostileTrial } from '#testing/hostile/hostile-trial.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import kubernetesRoleBindings from './kubernetes-role-bindings.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'

onKubernetes('role bindings as groups', (cluster) => {
  const { url, ca, adminToken } = cluster.connection

  interface Fixture {
    readonly target: LookupTarget
    readonly request: TargetRequest
    readonly changes: TargetChange[]
    /** Two bindings in their own namespace, and one of the cluster. */
    readonly namespace: string
    readonly viewers: string
    readonly editors: string
    readonly auditors: string
    readonly path: string
  }

  async function withTarget(params: ParamValues, use: (fixture: Fixture) => Promise<void>): Promise<void> {
    const namespace = await cluster.namespace()
    const path = `${rbac}/namespaces/${namespace}/rolebindings`
    const role = `readers-${namespace}`
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role }
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }]
    await cluster.must('POST', `${rbac}/clusterroles`, { metadata: { name: role }, rules })
    const other = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'staff' }
    for (const name of ['viewers', 'editors']) {
      await cluster.must('POST', path, { metadata: { name }, roleRef, subjects: [other] })
    }
    await cluster.must('POST', `${rbac}/clusterrolebindings`, { metadata: { name: `auditors:${namespace}` }, roleRef })
    const connection = fakeParams({ url, token: adminToken, certificate: ca, timeoutMillis: String(callMillis) })
    const k8s = await kubernetes.prepare(connection, noIssues(), fakeParseContext()).create(fakeModuleHost())
    const prepared = kubernetesRoleBindings.prepare(
      fakeParams({ target: 'k8s', ...params }),
      noIssues(),
      fakeParseContext(),
    )
    const target = await prepared.create(fakeModuleHost({ targets: { k8s } }))
    if (!hasLookups(target)) throw new Error('the target has no look-ups')
    const { request, changes } = targetFixture(target, { attributes: ['a', 'b', 'c'], groups: ['a', 'b', 'c'] })
    try {
      await use({
        target,
        request,
        changes,
        namespace,
        viewers: `rb:${namespace}:viewers`,
        editors: `rb:${namespace}:editors`,
        auditors: `crb:auditors:${namespace}`,
        path,
      })
    } finally {
      await k8s.close?.()
    }
  }

  const reported = (changes: readonly TargetChange[]): string[] =>
    changes.map(({ subject, action, value }) => `${subject} ${action} ${value}`)

  test('a user joins and leaves, others stay, and each change is reported once', async () => {
    await withTarget({}, async ({ target, request, changes, namespace, viewers, editors, auditors, path }) => {
      const login = `ada-${namespace}@x.test`
      expect(await target.findUser(login, [], request)).toBeUndefined()
      await target.createUser(userOf(login, {}, [viewers, auditors, 'a group of another target']), [], request)
      await target.createUser(userOf(login, {}, [viewers, auditors]), [], request)
      expect(reported(changes)).toEqual([`group add ${viewers}`, `group add ${auditors}`])
      expect((await target.findUser(login, [], request))?.groups).toEqual([auditors, viewers])
      changes.length = 0
      await target.syncUser(userOf(login, {}, [editors, viewers]), syncOptions([]), request)
      expect(reported(changes)).toEqual([`group add ${editors}`, `group delete ${auditors}`])
      await target.syncUser(userOf(login), syncOptions([], { keepGroups: true }), request)
      await target.syncUser(userOf(login), syncOptions([], { addOnly: true }), request)
      expect([...((await target.lookupUserByLogin(login))?.groups ?? [])].sort()).toEqual([editors, viewers])
      expect(await cluster.must('GET', `${path}/viewers`)).toMatchObject({
        subjects: [
          { kind: 'Group', name: 'staff' },
          { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: login },
        ],
      })
      await target.deleteUser(userOf(login), request)
      await target.deleteUser(userOf(login), request)
      expect(await target.findUser(login, [], request)).toBeUndefined()
      expect(await cluster.must('GET', `${path}/viewers`)).toMatchObject({ subjects: [{ kind: 'Group' }] })
    })
  })

  test('its bindings can be read', async () => {
    await withTarget({}, async ({ target, request, namespace, viewers, editors }) => {
      const [ada, bob] = [`ada-${namespace}`, `bob-${namespace}`]
      await target.createUser(userOf(ada, {}, [viewers, editors]), [], request)
      await target.createUser(userOf(bob, {}, [viewers]), [], request)
      expect(await target.lookupGroupByName(viewers)).toMatchObject({ name: viewers, members: [ada, bob] })
      expect(await target.lookupGroupById(`rb:${namespace}:none`)).toBeUndefined()
      expect(await target.lookupGroupByName('anything')).toBeUndefined()
      const filter = { kind: 'substring', attribute: 'name', initial: `rb:${namespace}:`, any: [] } as const
      const groups = await target.searchGroups({ filter, offset: 0, limit: 10 })
      expect(groups.items.map(({ name }) => name)).toEqual([editors, viewers])
      const inEditors = { kind: 'equal', attribute: 'groups', value: editors } as const
      const users = await target.searchUsers({ filter: inEditors, offset: 0, limit: 10 })
      expect(users.items).toMatchObject([{ userID: ada, groups: [editors, viewers] }])
    })
  })

  test('many concurrent users all join', async () => {
    await withTarget({}, async ({ target, request, namespace, viewers }) => {
      const logins = Array.from({ length: 20 }, (_, i) => `user${i}-${namespace}`)
      await Promise.all(logins.map((login) => target.createUser(userOf(login, {}, [viewers]), [], request)))
      expect([...((await target.lookupGroupByName(viewers))?.members ?? [])].sort()).toEqual(logins.sort())
    })
  })

  test('a missing or invalid binding is rejected before any change', async () => {
    await withTarget({}, async ({ target, request, changes, namespace, viewers, path }) => {
      for (const group of [`rb:${namespace}:none`, 'rb:x', 'crb:', 'crb:..', 'rb:../x:y', `rb:${namespace}:a/b`]) {
        const joins = target.createUser(userOf('ada', {}, [viewers, group]), [], request)
        await expect(joins, group).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      }
      expect(changes).toEqual([])
      expect(await cluster.must('GET', `${path}/viewers`)).toMatchObject({ subjects: [{ kind: 'Group' }] })
    })
  })

  test('service accounts, by name and namespace', async () => {
    await withTarget({ forSa: 'true' }, async ({ target, request, namespace, viewers, path }) => {
      const login = `app:${namespace}`
      await target.createUser(userOf(login, {}, [viewers]), [], request)
      const { subjects } = await cluster.must<{ subjects: object[] }>('GET', `${path}/viewers`)
      expect(subjects).toContainEqual({ kind: 'ServiceAccount', name: 'app', namespace })
      await cluster.serviceAccount({ namespace, name: 'app' })
      const token = await cluster.token({ namespace, name: 'app' })
      const pods = `/api/v1/namespaces/${namespace}/pods`
      await expect
        .poll(async () => (await cluster.call('GET', pods, undefined, token)).status, { timeout: 10_000 })
        .toBe(200)
      await target.deleteUser(userOf(login), request)
      await expect
        .poll(async () => (await cluster.call('GET', pods, undefined, token)).status, { timeout: 10_000 })
        .toBe(403)
      await expect(target.createUser(userOf('app', {}, [viewers]), [], request)).rejects.toMatchObject({
        code: 'BAD_REQUEST',
      })
    })
  })

  test('logins that cannot be subjects are rejected', async () => {
    await withTarget({}, async ({ target, request, viewers }) => {
      for (const login of ['', '\ud800']) {
        await expect(target.createUser(userOf(login, {}, [viewers]), [], request)).rejects.toMatchObject({
          code: 'BAD_REQUEST',
        })
      }
    })
  })

  test('each hostile value passes through every lookup and write unchanged, and touches no other user', {
    timeout: trialMillis,
  }, async () => {
    await withTarget({}, async ({ target, namespace, viewers, editors, path }) => {
      await hostileTrial('Kubernetes role bindings on an API server', within(target, namespace, [viewers, editors]), {
        attributes: [],
        groups: [viewers, editors],
        batch: 20,
        width: 4,
        mayRefuse: (_, value) => !value.isWellFormed(),
      })
      const { subjects } = await cluster.must<{ subjects: { kind: string }[] }>('GET', `${path}/editors`)
      expect(subjects).toMatchObject([{ kind: 'Group', name: 'staff' }])
    })
  })
})

/** Hides other changes in the same cluster from searches. */
function within(target: LookupTarget, namespace: string, groups: readonly string[]): LookupTarget {
  const isIn: Filter = { kind: 'or', filters: groups.map((value) => ({ kind: 'equal', attribute: 'groups', value })) }
  const isOf: Filter = { kind: 'substring', attribute: 'name', initial: `rb:${namespace}:`, any: [] }
  const narrowed = ({ filter, ...query }: SearchQuery, to: Filter): SearchQuery => ({
    ...query,
    filter: filter === undefined ? to : { kind: 'and', filters: [filter, to] },
  })
  return new Proxy(target, {
    get: (object, name) => {
      if (name === 'searchUsers') return (query: SearchQuery) => object.searchUsers(narrowed(query, isIn))
      if (name === 'searchGroups') return (query: SearchQuery) => object.searchGroups(narrowed(query, isOf))
      const member: unknown = Reflect.get(object, name)
      return typeof member === 'function' ? member.bind(object) : member
    },
  })
}
