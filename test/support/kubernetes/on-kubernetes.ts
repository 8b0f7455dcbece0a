import { readFileSync } from 'node:fs'
import { afterAll, describe, inject } from 'vitest'
import { parse } from 'yaml'
import { KubeClient } from '#testing/kubernetes/kube-client.ts'

/** Describes a suite on the tier's API server. It is skipped if there is none, which the tier reports. */
export function onKubernetes(name: string, suite: (cluster: KubeClient) => void): void {
  const connection = inject('kube')
  describe.skipIf(connection === undefined)(name, () => {
    const none = { url: '', ca: '', adminToken: '', kubeconfig: '' }
    const cluster = new KubeClient(connection ?? none)
    afterAll(() => cluster.close())
    suite(cluster)
  })
}

/** Registers User objects in the cluster, by the deployed definition. */
export async function defineUsers(cluster: KubeClient): Promise<void> {
  const definition = parse(readFileSync('deploy/crds/users.yaml', 'utf8')) as { metadata: { name: string } }
  await cluster.defineKind(definition, '/apis/openunison.tremolo.io/v1/users')
}
