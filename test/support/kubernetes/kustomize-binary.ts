import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { builtProgram } from '#testing/kubernetes/go-program.ts'

const moduleFolder = fileURLToPath(new URL('../../kube/', import.meta.url))

/** The part of kubectl that builds kustomizations, made on first use. Throws if it is not available. */
export const kustomizeBinary = (): Promise<string> =>
  builtProgram({
    name: `kustomize-${createHash('sha256')
      .update(readFileSync(join(moduleFolder, 'kustomize/main.go')))
      .digest('hex')
      .slice(0, 8)}`,
    moduleFolder,
    module: 'sigs.k8s.io/kustomize/api',
    package: './kustomize',
    cacheFolder: 'kustomize',
    variables: () => ({}),
  })
