import { calculateJwkThumbprint, decodeJwt, exportJWK } from 'jose'
import { FakeKubernetesApi } from '#testing/kubernetes/fake-kubernetes-api.ts'
import type { AccountOptions } from '#testing/sts/fake-cluster.ts'
import { FakeCluster } from '#testing/sts/fake-cluster.ts'

/** An API server on a real socket that signs service-account tokens, publishes its keys and reviews its own tokens. */
export class SigningCluster {
  readonly api: FakeKubernetesApi
  readonly #cluster: FakeCluster

  private constructor(api: FakeKubernetesApi, cluster: FakeCluster) {
    this.api = api
    this.#cluster = cluster
  }

  static async start(): Promise<SigningCluster> {
    const cluster = new FakeCluster(Date.now)
    const api = await FakeKubernetesApi.start()
    const jwk = await exportJWK(cluster.publicKey)
    const key = { ...jwk, use: 'sig', alg: 'RS256', kid: await calculateJwkThumbprint(jwk) }
    api.documents.set('/.well-known/openid-configuration', {
      issuer: cluster.issuer,
      jwks_uri: 'https://10.0.0.1/keys',
    })
    api.documents.set('/openid/v1/jwks', { keys: [key] })
    return new SigningCluster(api, cluster)
  }

  /** A token, bound to a pod unless `pod` is null; it is known to the API server until `forget`. */
  async token(options: AccountOptions = {}): Promise<string> {
    const token = await this.#cluster.token(options)
    const claims = decodeJwt<{ 'kubernetes.io': { pod?: { name: string; uid: string }; namespace: string } }>(token)
    const { pod, namespace } = claims['kubernetes.io']
    this.api.tokens.set(token, {
      username: claims.sub ?? '',
      uid: 'uid',
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
      extra:
        pod === undefined
          ? {}
          : {
              'authentication.kubernetes.io/pod-name': [pod.name],
              'authentication.kubernetes.io/pod-uid': [pod.uid],
            },
      audiences: [claims.aud ?? []].flat(),
    })
    return token
  }

  /** Simulates the deletion of the pod. */
  forget(token: string): void {
    this.api.tokens.delete(token)
  }

  close(): Promise<void> {
    return this.api.close()
  }
}
