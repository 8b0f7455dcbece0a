import type { TestProject } from 'vitest/node'
import { startKubeApiServer } from '#testing/kubernetes/kube-api-server.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import type { KubeConnection } from '#testing/kubernetes/kube-client.ts'
import { missingPart } from '#testing/run/missing-part.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The API server that all suites share, each in its own namespaces; undefined if it is not available. */
    kube: KubeConnection | undefined
  }
}

/** Vitest's global setup: one real API server for the tier. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  try {
    const server = await startKubeApiServer(await kubeBinaries())
    const { url, ca, adminToken, kubeconfig } = server
    project.provide('kube', { url, ca, adminToken, kubeconfig })
    return () => {
      server.client.close()
      return server.stop()
    }
  } catch (error) {
    missingPart('the Kubernetes API server', error)
    project.provide('kube', undefined)
    return undefined
  }
}
