import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectWorking, secretFile } from '#testing/gateway/new-gateway.ts'
import { defineUsers, onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { describeInit } from '#testing/scim/init-target.ts'
import { providerSuites } from '../stories/scim-clients/provider-suites.ts'

onKubernetes('a new gateway with a cluster as its target', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-init-kube-'))
  const ca = join(folder, 'ca.pem')
  beforeAll(async () => {
    writeFileSync(ca, cluster.connection.ca)
    await defineUsers(cluster)
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const target = (namespace: string): string[] => [
    ...['--target', 'kubernetes', '--target-url', cluster.connection.url, '--target-namespace', namespace],
    ...['--target-ca', ca],
  ]

  test('creates users as objects', async () => {
    const namespace = await cluster.namespace()
    await expectWorking([...target(namespace), '--target-secret-file', secretFile(cluster.connection.adminToken)])
    const path = `/apis/openunison.tremolo.io/v1/namespaces/${namespace}/users/ada`
    expect(await cluster.must('GET', path)).toMatchObject({
      spec: { sub: 'ada', attributes: { mail: ['ada@example.com'] } },
    })
  })

  describeInit(
    {
      name: 'kubernetes',
      // A group exists while a User object names it, and the login is the name of the object.
      can: { groups: false, renames: false },
      open: async () => ({
        args: target(await cluster.namespace()),
        secret: cluster.connection.adminToken,
      }),
    },
    providerSuites,
  )
})
