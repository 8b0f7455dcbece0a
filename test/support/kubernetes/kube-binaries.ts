import { existsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { builtProgram, type GoProgram, installedProgram } from '#testing/kubernetes/go-program.ts'

export interface KubeBinaries {
  readonly apiServer: string
  readonly etcd: string
}

const apiServer: GoProgram = {
  name: 'kube-apiserver',
  moduleFolder: fileURLToPath(new URL('../../kube/', import.meta.url)),
  module: 'k8s.io/kubernetes',
  package: 'k8s.io/kubernetes/cmd/kube-apiserver',
  cacheFolder: 'kube',
  variables: (version) => {
    const [major = '', minor = ''] = version.slice(1).split('.')
    const told = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' }
    const packages = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version']
    return Object.fromEntries(
      packages.flatMap((name) => Object.entries(told).map(([key, value]) => [`${name}.${key}`, value])),
    )
  },
}

/**
 * The programs of a real API server: those of `KUBEBUILDER_ASSETS`; else an installed etcd, and an API server that is
 * built from its Go modules on first use and stored outside the repository. Throws if either is not available.
 */
export async function kubeBinaries(): Promise<KubeBinaries> {
  const assets = process.env['KUBEBUILDER_ASSETS'] ?? ''
  if (assets !== '') {
    const binaries = { apiServer: join(assets, 'kube-apiserver'), etcd: join(assets, 'etcd') }
    for (const file of Object.values(binaries)) {
      if (!existsSync(file)) throw new Error(`KUBEBUILDER_ASSETS has no ${file}`)
    }
    return binaries
  }
  const etcd = installedProgram('etcd')
  if (etcd === undefined) throw new Error('etcd is not installed')
  return { etcd, apiServer: await builtProgram(apiServer) }
}
