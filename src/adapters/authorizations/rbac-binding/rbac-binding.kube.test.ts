import { expect, test } from 'vitest'
import kubernetes from '#adapters/targets/kubernetes/kubernetes.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import rbacBinding from './rbac-binding.ts'

const group = 'rbac.authorization.k8s.io'

onKubernetes('rules about the bindings of a real cluster', (cluster) => {
  const { url, ca, adminToken } = cluster.connection

  test('allow the users of a RoleBinding in its namespace, and of a ClusterRoleBinding', async () => {
    const namespace = await cluster.namespace()
    const role = `admins-${namespace}`
    const roleRef = { apiGroup: group, kind: 'ClusterRole', name: role }
    const bound = (name: string, ...users: string[]) => ({
      metadata: { name },
      roleRef,
      subjects: users.map((user) => ({ apiGroup: group, kind: 'User', name: user })),
    })
    const api = `/apis/${group}/v1`
    await cluster.must('POST', `${api}/clusterroles`, { metadata: { name: role }, rules: [] })
    await cluster.must('POST', `${api}/namespaces/${namespace}/rolebindings`, bound('admins', 'ada@corp.test'))
    await cluster.must('POST', `${api}/clusterrolebindings`, bound(role, 'root@corp.test'))
    const connection = fakeParams({ url, token: adminToken, certificate: ca })
    const k8s = await kubernetes.prepare(connection, noIssues(), fakeParseContext()).create(fakeModuleHost())
    try {
      const prepared = rbacBinding.prepare(fakeParams({}), noIssues(), fakeParseContext())
      const { isAuthorized } = await prepared.create(fakeModuleHost({ targets: { k8s } }))
      const allowed = async (mail: string, ...place: string[]) =>
        isAuthorized(subject('uid=x,o=Tremolo', { mail: [mail] }), [
          'k8s',
          'ClusterRole',
          role,
          'mail',
          'o=Tremolo',
          ...place,
        ])
      expect(await allowed('ada@corp.test', namespace)).toBe(true)
      expect(await allowed('ada@corp.test')).toBe(false)
      expect(await allowed('ada@corp.test', 'default')).toBe(false)
      expect(await allowed('root@corp.test')).toBe(true)
      expect(await allowed('root@corp.test', namespace)).toBe(false)
    } finally {
      await k8s.close?.()
    }
  })
})
