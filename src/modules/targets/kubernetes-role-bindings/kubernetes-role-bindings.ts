import { GatewayError } from '#kernel/errors.ts'
import { isCluster } from '#sdk/kubernetes-cluster.ts'
import { flag, text } from '#sdk/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/parameters.ts'
import { defineTarget } from '#sdk/target.ts'
import { people, serviceAccounts } from './binding-subject.ts'
import { RoleBindingsTarget } from './role-bindings-target.ts'

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
  create: async ({ cluster, forSa }, host) =>
    new RoleBindingsTarget(
      () => {
        const target = host.targets.get(cluster)
        if (isCluster(target)) return target.objects
        throw new GatewayError('INTERNAL', `target "${cluster}" is no Kubernetes cluster`)
      },
      forSa ? serviceAccounts : people,
    ),
})
