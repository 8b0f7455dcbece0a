import { fileURLToPath } from 'node:url'
import { builtProgram, type GoProgram, installedProgram, versionIn } from '#testing/kubernetes/go-program.ts'

const helm: GoProgram = {
  name: 'helm',
  moduleFolder: fileURLToPath(new URL('../../kube/', import.meta.url)),
  module: 'helm.sh/helm/v3',
  package: 'helm.sh/helm/v3/cmd/helm',
  cacheFolder: 'helm',
  variables: (version, goMod) => {
    // The release of Kubernetes that a chart sees if it is rendered without a cluster.
    const minor = versionIn(goMod, 'k8s.io/kubernetes')?.split('.')[1] ?? ''
    const packages = ['helm.sh/helm/v3/pkg/lint/rules', 'helm.sh/helm/v3/pkg/chartutil']
    return Object.fromEntries([
      ['helm.sh/helm/v3/internal/version.version', version],
      ...packages.flatMap((name) => [
        [`${name}.k8sVersionMajor`, '1'],
        [`${name}.k8sVersionMinor`, minor],
      ]),
    ])
  },
}

/** Helm: the installed one, else one that is built on first use. Throws if it is not available. */
export const helmBinary = async (): Promise<string> => installedProgram('helm') ?? (await builtProgram(helm))
