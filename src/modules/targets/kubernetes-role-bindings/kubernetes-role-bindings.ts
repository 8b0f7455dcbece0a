import { GatewayError } from '#kernel/errors.ts'
import { isCluster } from '#sdk/kubernetes-cluster.ts'
import { flag, text } from '#sdk/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/parameters.ts'
import { defineTarget } from '#sdk/target.ts'

const parameters = {
  target: text({ about: 'The Kubernetes target whose cluster has the bindings.', required: true, reference: 'target' }),
  forSa: flag({ about: 'The users are service accounts, with logins `<name>:<namespace>`.' }),
} satisfies ParameterTable

interface Config {
  readonly cluster: string
  readonly forSa: boolean
}

/** Users named in RoleBindings and ClusterRoleBindings, which are the groups. */
export default defineTarget<Config>({
  className: 'targets.KubernetesRoleBindings',
  aliases: ['com.tremolosecurity.provisioning.targets.RbacBindingsTarget'],
  parameters,
  parse(params, issues, context) {
    const { target, forSa } = readParameters(parameters, params, issues, context)
    return { cluster: target, forSa }
  },
  /** Loaded where there is such a target: a gateway without one is smaller and starts sooner. */
  create: async ({ cluster, forSa }, host) => {
    const { people, serviceAccounts } = await import('./binding-subject.ts')
    const { RoleBindingsTarget } = await import('./role-bindings-target.ts')
    return new RoleBindingsTarget(
      () => {
        const target = host.targets.get(cluster)
        if (isCluster(target)) return target.objects
        throw new GatewayError('INTERNAL', `target "${cluster}" is no Kubernetes cluster`)
      },
      forSa ? serviceAccounts : people,
    )
  },
})
