import { readFileSync } from 'node:fs'
import { expect, inject, test } from 'vitest'
import kubernetes from '#adapters/targets/kubernetes/kubernetes.ts'
import kubernetesUsers from '#adapters/targets/kubernetes-users/kubernetes-users.ts'
import { targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { startKubeApiServer } from '#testing/kubernetes/kube-api-server.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import { defineUsers, onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'

onKubernetes('the API server of the tests', (cluster) => {
  test('is the release in go.mod, unless another is given', async () => {
    const { gitVersion } = await cluster.must<{ gitVersion: string }>('GET', '/version')
    expect(gitVersion).toMatch(/^v1\.\d+\.\d+$/)
    if (process.env['KUBEBUILDER_ASSETS'] === undefined) {
      expect(readFileSync('test/kube/go.mod', 'utf8')).toContain(`k8s.io/kubernetes ${gitVersion}\n`)
    }
  })

  test('rejects anonymous callers and callers without rights', async () => {
    expect((await cluster.call('GET', '/api/v1/pods', undefined, 'nobody')).status).toBe(401)
    const namespace = await cluster.namespace()
    await cluster.serviceAccount({ namespace, name: 'app' })
    const token = await cluster.token({ namespace, name: 'app' })
    expect((await cluster.call('GET', '/api/v1/pods', undefined, token)).status).toBe(403)
  })

  test('admits pods by the security standard of their namespace', async () => {
    const namespace = await cluster.namespace({ 'pod-security.kubernetes.io/enforce': 'restricted' })
    await cluster.serviceAccount({ namespace, name: 'app' })
    await expect(cluster.pod({ namespace, name: 'app' }, 'app-1')).rejects.toThrow(/PodSecurity [^ ]*restricted:latest/)
  })
})

test.skipIf(inject('kube') === undefined)(
  'users survive a crash of the API server, and the target reconnects automatically',
  { timeout: 180_000 },
  async () => {
    const server = await startKubeApiServer(await kubeBinaries())
    try {
      await defineUsers(server.client)
      const { url, adminToken, ca } = server
      const connection = fakeParams({ url, token: adminToken, certificate: ca, timeoutMillis: '5000' })
      const k8s = await kubernetes.prepare(connection, noIssues(), fakeParseContext()).create(fakeModuleHost())
      const params = fakeParams({ k8sTarget: 'k8s', nameSpace: 'default' })
      const target = await kubernetesUsers
        .prepare(params, noIssues(), fakeParseContext())
        .create(fakeModuleHost({ targets: { k8s } }))
      const { request, changes } = targetFixture(target, { attributes: ['a', 'b', 'c'], groups: ['a', 'b', 'c'] })

      const acknowledged: string[] = []
      const load = async (prefix: string, count: number): Promise<void> => {
        for (let i = 0; i < count; i++) {
          await target.createUser(userOf(`${prefix}-${i}`), [], request)
          acknowledged.push(`${prefix}-${i}`)
        }
      }
      await load('before', 5)
      const during = load('during', 100_000).catch((error: unknown) => error)
      await new Promise((resume) => setTimeout(resume, 300))
      await server.kill()
      expect(await during).toMatchObject({ code: 'TARGET_UNREACHABLE' })
      await expect(target.findUser('before-0', [], request)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
      await server.restart()
      await load('after', 5)
      for (const login of acknowledged) expect(await target.findUser(login, [], request)).toBeDefined()
      expect(changes).toHaveLength(acknowledged.length)
      await k8s.close?.()
    } finally {
      server.client.close()
      await server.stop()
    }
  },
)
