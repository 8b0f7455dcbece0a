import { GatewayError } from '#kernel/errors.ts'
import type { Configuration, TargetConfig } from '#sdk/configuration.ts'
import type { KubernetesCluster } from '#sdk/kubernetes-cluster.ts'
import type { AccountTokenVerifier } from '#sdk/token-review.ts'

const kubernetesClass = 'targets.Kubernetes'

/**
 * The same configuration with targets that are not asked: clusters, and others that cannot be created here. Whatever
 * needs one of them fails with TARGET_UNREACHABLE, and says why.
 */
export function withoutClusters(configuration: Configuration): Configuration {
  const targets = Array.from(configuration.targets, ([name, config]): [string, TargetConfig] => {
    const { target } = config
    const create: typeof target.create = async (host) => {
      if (target.className === kubernetesClass) return absentCluster(name)
      try {
        return await target.create(host)
      } catch (cause) {
        return absentCluster(name, cause)
      }
    }
    return [name, { ...config, target: { ...target, create } }]
  })
  return { ...configuration, targets: new Map(targets) }
}

function absentCluster(name: string, cause?: unknown): KubernetesCluster & AccountTokenVerifier {
  const reason = cause instanceof Error ? `: ${cause.message}` : ''
  const away = async (): Promise<never> => {
    throw new GatewayError('TARGET_UNREACHABLE', `this command does not ask the target "${name}"${reason}`, { cause })
  }
  return {
    objects: { get: away, list: away, create: away, replace: away, remove: away },
    verifyAccountToken: away,
    reviewToken: away,
    findUser: away,
    createUser: away,
    syncUser: away,
    deleteUser: away,
  }
}
