import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import { callApi, type KubernetesConnection, openApiServer } from '#protocols/kubernetes/api-connection.ts'
import { createClusterKeySet, verifyServiceAccountToken } from '#protocols/kubernetes/service-account-token.ts'
import type { AccountTokenVerdict } from './cluster.ts'

interface ServiceAccountVerifier {
  /** Throws TARGET_UNREACHABLE if the cluster's keys were never read, or not for too long. */
  verify(token: string): Promise<AccountTokenVerdict>
  /** Whether the cluster's keys are known and recent enough to be used. */
  hasKeys(): boolean
  close(): void
}

/** Verifies tokens with the keys that the API server publishes. Makes no call yet. */
export async function createServiceAccountVerifier(
  connection: KubernetesConnection,
  parts: { readonly timeoutMillis: number; readonly clock: Clock; readonly log: Logger },
): Promise<ServiceAccountVerifier> {
  const server = await openApiServer(connection)
  const keys = createClusterKeySet(
    async (path, { bytes }) => {
      const request = { url: `${server.address}${path}`, method: 'GET', headers: { accept: '*/*' }, body: '' }
      const limits = { millis: parts.timeoutMillis, bytes }
      const { status, body } = await callApi(request, await server.credentials(), limits)
      if (status !== 200) throw new Error(`the API server answered ${status} to GET ${path}`)
      return JSON.parse(body)
    },
    parts.clock,
    parts.log,
  )
  return {
    verify: (token) => verifyServiceAccountToken(token, keys, parts.clock),
    hasKeys: () => keys.fresh(),
    close: () => server.close(),
  }
}
