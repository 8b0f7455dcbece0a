import process from 'node:process'
import { helmBinary } from '#testing/kubernetes/helm-binary.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import { kustomizeBinary } from '#testing/kubernetes/kustomize-binary.ts'
import { openBaoBinary } from '#testing/sts/openbao.ts'
import { spiffeVerifier } from '#testing/sts/spiffe-verifier.ts'
import { nfpmBinary } from '../../release/packages.ts'

/**
 * Builds the programs of the Kubernetes tests that are missing, so that their build does not count as the tests' time.
 * A process that needs one of them meanwhile waits for it.
 */
const programs: Readonly<Record<string, () => Promise<string>>> = {
  'API server': async () => (await kubeBinaries()).apiServer,
  helm: helmBinary,
  kustomize: kustomizeBinary,
  'server for keys': openBaoBinary,
  'maker of packages': nfpmBinary,
  'verifier of JWT-SVIDs': spiffeVerifier,
}

for (const [name, find] of Object.entries(programs)) {
  const started = performance.now()
  try {
    const file = await find()
    console.log(`${name}: ${((performance.now() - started) / 1000).toFixed(1)} s, ${file}`)
  } catch (error) {
    console.error(`${name}: ${error instanceof Error ? error.message : error}`)
    process.exitCode = 1
  }
}
