import { GatewayError } from '#kernel/errors.ts'
import {
  type KubernetesConfig,
  parameters,
  parseKubernetes,
} from '#modules/targets/kubernetes/kubernetes-parameters.ts'
import type { KubernetesCluster } from '#sdk/kubernetes-cluster.ts'
import { defineTarget } from '#sdk/target.ts'
import type { AccountTokenVerifier } from '#sdk/token-review.ts'

/**
 * A cluster. It reviews and verifies tokens, and other targets keep their users in its objects; it holds none of its own,
 * so nothing can be provisioned to it.
 */
export default defineTarget<KubernetesConfig>({
  className: 'targets.Kubernetes',
  aliases: ['com.tremolosecurity.unison.openshiftv3.OpenShiftTarget'],
  parameters,
  parse: parseKubernetes,
  /** Loaded where there is such a target: a gateway without one is smaller and starts sooner. */
  create: async (
    { connection, timeoutMillis },
    { name, clock, log },
  ): Promise<AccountTokenVerifier & KubernetesCluster> => {
    const { ObjectClient } = await import('#protocols/kubernetes/object-client.ts')
    const { createServiceAccountVerifier } = await import('#protocols/kubernetes/service-account-verifier.ts')
    const { createTokenReviewClient } = await import('#protocols/kubernetes/token-review-client.ts')
    const client = await createTokenReviewClient(connection, { timeoutMillis })
    const verifier = await createServiceAccountVerifier(connection, { timeoutMillis, clock, log })
    const objects = await ObjectClient.open(connection, { who: `target "${name}"`, timeoutMillis })
    return {
      objects,
      verifyAccountToken: (token) => verifier.verify(token),
      hasKeys: () => verifier.hasKeys(),
      reviewToken: (token, audiences) => client.review(token, audiences),
      findUser: noUsers,
      createUser: noUsers,
      syncUser: noUsers,
      deleteUser: noUsers,
      close: () => {
        verifier.close()
        client.close()
        objects.close()
      },
    }
  },
})

async function noUsers(): Promise<never> {
  throw new GatewayError('NOT_SUPPORTED', 'users are not provisioned to a Kubernetes target')
}
