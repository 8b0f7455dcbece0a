import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { freePort } from '#testing/gateway/free-port.ts'
import { pauseProcess } from '#testing/gateway/paused-process.ts'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'
import type { KubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import { KubeClient, type KubeConnection } from '#testing/kubernetes/kube-client.ts'

export interface KubeApiServer extends KubeConnection {
  readonly client: KubeClient
  /** The issuer of service-account tokens, and their default audience. */
  readonly issuer: string
  /** Ends the API server at once, like a crash. Its data stays. */
  kill(): Promise<void>
  /** Hangs: it accepts connections and answers nothing, until `resume`. */
  pause(): Promise<void>
  resume(): void
  /** Starts it again, ended or not, with the same data at the same address. */
  restart(): Promise<void>
  /** With its data. */
  stop(): Promise<void>
}

const startMillis = 90_000
const issuer = 'https://kubernetes.default.svc.cluster.local'

/**
 * A real API server and its etcd, in a temporary folder, on free ports of loopback: RBAC, no anonymous access, all
 * admission plug-ins that are on by default. No controllers run: namespaces have no default service account, and
 * nothing is scheduled. `args` are further flags.
 */
export async function startKubeApiServer(binaries: KubeBinaries, args: readonly string[] = []): Promise<KubeApiServer> {
  const folder = await mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'gatehouse-kube-'))
  const [port, etcdPort, peerPort] = [await freePort(), await freePort(), await freePort()]
  const url = `https://127.0.0.1:${port}`
  const adminToken = randomUUID()
  const kubeconfig = join(folder, 'kubeconfig')
  const client = new KubeClient({ url, ca: testServerCertificate, adminToken, kubeconfig })
  const etcd = new ServerProcess(binaries.etcd, etcdArgs(folder, etcdPort, peerPort))
  const api = new ServerProcess(binaries.apiServer, [...apiServerArgs(folder, port, etcdPort), ...args])
  const atExit = (): void => {
    api.abandon()
    etcd.abandon()
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', atExit)

  async function start(): Promise<void> {
    api.start()
    const end = performance.now() + startMillis
    while (!(await client.isReady())) {
      for (const server of [etcd, api]) if (!server.runs) throw new Error(server.complaint)
      if (performance.now() > end) throw new Error(`not ready in time: ${api.complaint}`)
      await new Promise((resume) => setTimeout(resume, 100))
    }
  }

  async function stop(): Promise<void> {
    process.off('exit', atExit)
    await api.end('SIGKILL')
    await etcd.end('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }

  try {
    await writeFiles(folder, adminToken, url)
    etcd.start()
    await start()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url,
    ca: testServerCertificate,
    adminToken,
    kubeconfig,
    issuer,
    client,
    kill: () => api.end('SIGKILL'),
    pause: () => api.pause(),
    resume: () => api.resume(),
    restart: async () => {
      await api.end('SIGTERM')
      await start()
    },
    stop,
  }
}

const etcdArgs = (folder: string, port: number, peerPort: number): string[] => [
  `--data-dir=${join(folder, 'etcd')}`,
  `--listen-client-urls=http://127.0.0.1:${port}`,
  `--advertise-client-urls=http://127.0.0.1:${port}`,
  `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
  `--initial-advertise-peer-urls=http://127.0.0.1:${peerPort}`,
  `--initial-cluster=default=http://127.0.0.1:${peerPort}`,
]

const apiServerArgs = (folder: string, port: number, etcdPort: number): string[] => [
  `--etcd-servers=http://127.0.0.1:${etcdPort}`,
  '--bind-address=127.0.0.1',
  '--advertise-address=127.0.0.1',
  '--endpoint-reconciler-type=none',
  `--secure-port=${port}`,
  `--cert-dir=${folder}`,
  `--tls-cert-file=${join(folder, 'server.pem')}`,
  `--tls-private-key-file=${join(folder, 'server-key.pem')}`,
  `--client-ca-file=${join(folder, 'server.pem')}`,
  `--token-auth-file=${join(folder, 'tokens.csv')}`,
  '--anonymous-auth=false',
  '--authorization-mode=Node,RBAC',
  '--service-cluster-ip-range=10.0.0.0/24',
  `--service-account-issuer=${issuer}`,
  `--service-account-signing-key-file=${join(folder, 'accounts-key.pem')}`,
  `--service-account-key-file=${join(folder, 'accounts.pem')}`,
  '--allow-privileged=true',
  '--profiling=false',
]

/** Keys, certificates and credentials of this server; only its own certificate is shared by all tests. */
async function writeFiles(folder: string, adminToken: string, url: string): Promise<void> {
  await mkdir(join(folder, 'etcd'), { mode: 0o700 })
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const files = {
    'server.pem': testServerCertificate,
    'server-key.pem': testServerKey,
    'accounts-key.pem': privateKey.export({ type: 'pkcs8', format: 'pem' }),
    'accounts.pem': publicKey.export({ type: 'spki', format: 'pem' }),
    'tokens.csv': `${adminToken},admin,admin-1,"system:masters"\n`,
    'client-key.pem': generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
      type: 'pkcs8',
      format: 'pem',
    }),
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 })
  signClient(folder)
  await writeFile(join(folder, 'kubeconfig'), JSON.stringify(kubeconfigOf(folder, url)), { mode: 0o600 })
}

function signClient(folder: string): void {
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'], timeout: 30_000 })
  }
  openssl('req', '-new', '-key', 'client-key.pem', '-subj', '/O=system:masters/CN=admin', '-out', 'client.csr')
  const authority = ['-CA', 'server.pem', '-CAkey', 'server-key.pem', '-CAcreateserial']
  openssl('x509', '-req', '-in', 'client.csr', ...authority, '-days', '2', '-out', 'client.pem')
}

const kubeconfigOf = (folder: string, url: string): object => ({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'test',
  contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
  clusters: [{ name: 'test', cluster: { server: url, 'certificate-authority': join(folder, 'server.pem') } }],
  users: [
    {
      name: 'admin',
      user: { 'client-certificate': join(folder, 'client.pem'), 'client-key': join(folder, 'client-key.pem') },
    },
  ],
})

class ServerProcess {
  readonly #program: string
  readonly #args: readonly string[]
  #child: ChildProcess | undefined
  #output = ''

  constructor(program: string, args: readonly string[]) {
    this.#program = program
    this.#args = args
  }

  start(): void {
    this.#output = ''
    const child = spawn(this.#program, this.#args, { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#child = child
    const keep = (text: unknown): void => {
      this.#output = `${this.#output}${text}`.slice(-3000)
    }
    child.stderr?.on('data', keep)
    child.once('error', keep)
  }

  get runs(): boolean {
    const child = this.#child
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null
  }

  get complaint(): string {
    return `${this.#program} does not run: ${this.#output.trim()}`
  }

  async pause(): Promise<void> {
    if (this.#child?.pid !== undefined) await pauseProcess(this.#child.pid)
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  abandon(): void {
    this.#child?.kill('SIGKILL')
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (child === undefined || !this.runs) return
    const ended = new Promise((resume) => child.once('exit', resume))
    child.kill(signal)
    const late = setTimeout(() => child.kill('SIGKILL'), 5_000)
    await ended
    clearTimeout(late)
  }
}
