import process from 'node:process'
import { kubeBinaries } from '#testing/kube-binaries.ts'

/** Has the API server of the Kubernetes tests at hand, so that its build is not counted as their time. */
try {
  const { apiServer, etcd } = await kubeBinaries()
  console.log(`${apiServer}\n${etcd}`)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
