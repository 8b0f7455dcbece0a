import { parsed, text } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/module/parameters.ts'
import { objectsOf } from '#sdk/target/kubernetes-cluster.ts'
import { defineTarget } from '#sdk/target-module/target-module.ts'

const parameters = {
  k8sTarget: text({
    about: 'The [targets.Kubernetes](targets.Kubernetes.md) target whose cluster holds the objects.',
    required: true,
    reference: 'target',
  }),
  nameSpace: parsed('namespace', readNamespace, { about: 'The namespace of the objects.', required: true }),
} satisfies ParameterTable

interface Config {
  readonly cluster: string
  readonly namespace: string
}

/** Users stored as `User` objects of `openunison.tremolo.io/v1` in a cluster. */
export default defineTarget<Config>({
  className: 'targets.KubernetesUsers',
  aliases: ['com.tremolosecurity.provisioning.providers.K8sCrdUserProvider'],
  parameters,
  parse(params, issues, context) {
    const { k8sTarget, nameSpace = '' } = readParameters(parameters, params, issues, context)
    return { cluster: k8sTarget, namespace: nameSpace }
  },
  passwords: () => false,
  /** Loaded on first use: a gateway without such a target is smaller and starts sooner. */
  create: async ({ cluster, namespace }, host) => {
    const { kubernetesUsersTarget } = await import('./kubernetes-users-target.ts')
    return kubernetesUsersTarget(() => objectsOf(host.targets, cluster), namespace)
  },
})

function readNamespace(value: string): string {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value)) return value
  throw new Error(`"${value}" is not a valid namespace name`)
}
