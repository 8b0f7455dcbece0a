import process from 'node:process'
import { helmBinary } from '#testing/kubernetes/helm-binary.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import { kustomizeBinary } from '#testing/kubernetes/kustomize-binary.ts'
import { openBaoBinary } from '#testing/sts/openbao.ts'

/** Builds the programs of the Kubernetes tests, so that their build does not count as the tests' time. */
const started = performance.now()
try {
  const { apiServer, etcd } = await kubeBinaries()
  const ready = performance.now()
  const helm = await helmBinary()
  const kustomize = await kustomizeBinary()
  const seconds = (from: number, to: number): string => `${((to - from) / 1000).toFixed(1)} s`
  console.log(`${apiServer}\n${etcd}\nthe API server was prepared in ${seconds(started, ready)}`)
  const withHelm = performance.now()
  console.log(`${helm}\n${kustomize}\nhelm and kustomize were prepared in ${seconds(ready, withHelm)}`)
  console.log(`${await openBaoBinary()}\nthe server for keys was prepared in ${seconds(withHelm, performance.now())}`)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
