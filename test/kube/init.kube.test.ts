import { beforeAll, expect, test } from 'vitest'
import { expectWorking, secretFile } from '#testing/gateway/new-gateway.ts'
import { defineUsers, onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'

onKubernetes('a new gateway with a cluster as its target', (cluster) => {
  beforeAll(() => defineUsers(cluster))

  test('creates users as objects', async () => {
    const namespace = await cluster.namespace()
    const { url, ca, adminToken } = cluster.connection
    await expectWorking([
      ...['--target', 'kubernetes', '--target-url', url, '--target-namespace', namespace],
      ...['--target-secret-file', secretFile(adminToken), '--target-ca', secretFile(ca)],
    ])
    const path = `/apis/openunison.tremolo.io/v1/namespaces/${namespace}/users/ada`
    expect(await cluster.must('GET', path)).toMatchObject({
      spec: { sub: 'ada', attributes: { mail: ['ada@example.com'] } },
    })
  })
})
