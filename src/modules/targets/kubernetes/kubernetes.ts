import { GatewayError } from '#kernel/errors.ts'
import {
  type KubernetesConfig,
  parameters,
  parseKubernetes,
} from '#modules/targets/kubernetes/kubernetes-parameters.ts'
import { createTokenReviewClient } from '#protocols/kubernetes/token-review-client.ts'
import { defineTarget } from '#sdk/target.ts'
import type { TokenReviewer } from '#sdk/token-review.ts'

/** A cluster. It reviews tokens; it holds no users of its own, so nothing can be provisioned to it. */
export default defineTarget<KubernetesConfig>({
  className: 'targets.Kubernetes',
  aliases: ['com.tremolosecurity.unison.openshiftv3.OpenShiftTarget'],
  parameters,
  parse: parseKubernetes,
  create: async ({ connection, timeoutMillis }): Promise<TokenReviewer> => {
    const client = await createTokenReviewClient(connection, { timeoutMillis })
    return {
      reviewToken: (token, audiences) => client.review(token, audiences),
      findUser: noUsers,
      createUser: noUsers,
      syncUser: noUsers,
      deleteUser: noUsers,
      close: () => client.close(),
    }
  },
})

async function noUsers(): Promise<never> {
  throw new GatewayError('NOT_SUPPORTED', 'users are not provisioned to a Kubernetes target')
}
