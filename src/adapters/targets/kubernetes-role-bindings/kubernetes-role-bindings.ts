import { flag, text } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/module/parameters.ts'
import { objectsOf } from '#sdk/target/kubernetes-cluster.ts'
import { defineTarget } from '#sdk/target-module/target-module.ts'

const parameters = {
  target: text({
    about: 'The [targets.Kubernetes](targets.Kubernetes.md) target whose cluster has the bindings.',
    required: true,
    reference: 'target',
  }),
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
  passwords: () => false,
  /** Loaded on first use: a gateway without such a target is smaller and starts sooner. */
  create: async ({ cluster, forSa }, host) => {
    const { people, roleBindingsTarget, serviceAccounts } = await import('./role-bindings-target.ts')
    return roleBindingsTarget(() => objectsOf(host.targets, cluster), forSa ? serviceAccounts : people)
  },
})
