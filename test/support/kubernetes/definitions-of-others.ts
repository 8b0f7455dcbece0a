import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { installedProgram } from '#testing/kubernetes/go-program.ts'

/** Kinds that the chart makes objects of and that others define: their Go modules have the definitions as they are released. */
const modules = [
  {
    module: 'sigs.k8s.io/gateway-api@v1.4.1',
    folder: 'config/crd/standard',
    files: ['gateway.networking.k8s.io_httproutes.yaml'],
  },
  {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.87.1',
    folder: 'example/prometheus-operator-crd',
    files: ['monitoring.coreos.com_podmonitors.yaml', 'monitoring.coreos.com_prometheusrules.yaml'],
  },
]

/** The files of the definitions, fetched on first use; Go compares them with its public checksums. Throws if not available. */
export async function definitionsOfOthers(): Promise<string[]> {
  const go = installedProgram('go')
  if (go === undefined) throw new Error('Go to fetch them is not installed')
  const files: string[] = []
  for (const { module, folder, files: names } of modules) {
    // Outside of any module, so that no go.mod has a say.
    const options = { cwd: tmpdir(), env: { ...process.env, GOWORK: 'off' }, timeout: 5 * 60_000 }
    const { stdout } = await promisify(execFile)(go, ['mod', 'download', '-json', module], options)
    const { Dir: root } = JSON.parse(stdout) as { Dir: string }
    files.push(...names.map((name) => join(root, folder, name)))
  }
  return files
}
