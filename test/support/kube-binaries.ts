import { type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { arch, homedir, platform } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

export interface KubeBinaries {
  readonly apiServer: string
  readonly etcd: string
}

/** The folder whose go.mod says which API server is built. */
const moduleFolder = fileURLToPath(new URL('../kube/', import.meta.url))
const buildMillis = 40 * 60_000
/** The first release of Go that fetches a newer one for itself. */
const oldestGo = 21

/**
 * The programs of a real API server: those of `KUBEBUILDER_ASSETS`; else an installed etcd, and an API server that is
 * built from its Go modules on first use and kept outside the repository. Throws when either cannot be had.
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
  const etcd = program('etcd')
  if (etcd === undefined) throw new Error('etcd is not installed')
  return { etcd, apiServer: await builtApiServer() }
}

async function builtApiServer(): Promise<string> {
  const version = /^require k8s\.io\/kubernetes (v\d+\.\d+\.\d+)$/m.exec(readModule())?.[1]
  if (version === undefined) throw new Error('test/kube/go.mod names no release of k8s.io/kubernetes')
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
  const folder = join(cache, 'gatehouse', 'kube', `${version}-${platform()}-${arch()}`)
  const file = join(folder, 'kube-apiserver')
  if (existsSync(file)) return file
  mkdirSync(folder, { recursive: true })
  const unfinished = `${file}.${process.pid}`
  try {
    await build(version, unfinished)
    renameSync(unfinished, file)
  } finally {
    rmSync(unfinished, { force: true })
  }
  return file
}

async function build(version: string, output: string): Promise<void> {
  const started = performance.now()
  const minutes = (): string => ((performance.now() - started) / 60_000).toFixed(1)
  const say = (text: string): void => console.log(`kube-apiserver ${version}: ${text}`)
  say('building it once from its Go modules, which takes several minutes')
  const progress = setInterval(() => say(`still building after ${minutes()} min`), 60_000)
  try {
    const args = ['build', '-p', '2', '-trimpath', '-buildvcs=false', '-ldflags', linkerFlags(version)]
    await goTool([...args, '-o', output, 'k8s.io/kubernetes/cmd/kube-apiserver'])
  } finally {
    clearInterval(progress)
  }
  say(`built in ${minutes()} min`)
}

/** What makes the server tell its version, which a build from modules does not know. */
function linkerFlags(version: string): string {
  const [major = '', minor = ''] = version.slice(1).split('.')
  const told = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' }
  const packages = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version']
  const values = packages.flatMap((name) => Object.entries(told).map(([key, value]) => `-X ${name}.${key}=${value}`))
  return ['-s', '-w', ...values].join(' ')
}

async function goTool(args: readonly string[]): Promise<void> {
  const go = program('go')
  if (go === undefined) throw new Error('neither kube-apiserver (KUBEBUILDER_ASSETS) nor Go to build it is installed')
  const env = { ...process.env, CGO_ENABLED: '0', GOTOOLCHAIN: process.env['GOTOOLCHAIN'] ?? 'auto', GOWORK: 'off' }
  if (minorOf(go) >= oldestGo) return run(go, args, { cwd: moduleFolder, env })
  const root = await fetchedToolchain(go)
  return run(join(root, 'bin', 'go'), args, { cwd: moduleFolder, env: { ...env, GOROOT: root, GOTOOLCHAIN: 'local' } })
}

/** Go's own releases are modules too, and older ones can download them, checksums included. */
async function fetchedToolchain(go: string): Promise<string> {
  const version = /^go (\d+\.\d+\.\d+)$/m.exec(readModule())?.[1] ?? ''
  const name = `golang.org/toolchain@v0.0.1-go${version}.${platform()}-${arch() === 'x64' ? 'amd64' : arch()}`
  const download = spawnSync(go, ['mod', 'download', '-modcacherw', '-json', name], {
    encoding: 'utf8',
    timeout: buildMillis,
  })
  const { Dir: root } = JSON.parse(download.stdout || '{}') as { Dir?: string }
  if (download.status !== 0 || root === undefined) throw new Error(`${name}: ${download.stderr || download.stdout}`)
  for (const file of globSync(['bin/*', 'pkg/tool/*/*'], { cwd: root })) chmodSync(join(root, file), 0o755)
  return root
}

function minorOf(go: string): number {
  const { stdout } = spawnSync(go, ['env', 'GOVERSION'], { encoding: 'utf8' })
  return Number(/^go1\.(\d+)/.exec(stdout)?.[1] ?? 0)
}

function run(command: string, args: readonly string[], options: SpawnOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'ignore', 'pipe'], timeout: buildMillis })
    let output = ''
    child.stderr?.on('data', (chunk) => {
      output = `${output}${chunk}`.slice(-2000)
    })
    child.once('error', reject)
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`go: ${output.trim()}`))))
  })
}

const readModule = (): string => readFileSync(join(moduleFolder, 'go.mod'), 'utf8')

function program(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/local/go/bin', '/usr/local/bin', '/usr/bin']
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file))
}
