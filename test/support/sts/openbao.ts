import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { freePort } from '#testing/gateway/free-port.ts'
import { pauseProcess } from '#testing/gateway/paused-process.ts'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'
import { builtProgram, type GoProgram, installedProgram } from '#testing/kubernetes/go-program.ts'

const moduleFolder = fileURLToPath(new URL('../../vault/', import.meta.url))

/**
 * The server that OpenBao was forked from: Vault 1.14, under the MPL, with the engines that the tests use. The API of
 * these engines is the same as in OpenBao, whose own releases cannot be required by version: their module path lacks a
 * /v2.
 */
const program = (): GoProgram => ({
  name: `vault-${createHash('sha256')
    .update(readFileSync(join(moduleFolder, 'main.go')))
    .digest('hex')
    .slice(0, 8)}`,
  moduleFolder,
  module: 'github.com/hashicorp/vault',
  package: '.',
  cacheFolder: 'vault',
  variables: () => ({}),
})

const installed = (): string | undefined => installedProgram('bao') ?? installedProgram('vault')

/** An installed one, else one that is built on first use and stored outside the repository. Throws if it is not available. */
export const openBaoBinary = async (): Promise<string> => installed() ?? (await builtProgram(program()))

export interface OpenBao {
  /** `https://127.0.0.1:…`, or `http` without TLS. */
  readonly address: string
  /** The certificate of the authority that signed the server's, in PEM. */
  readonly ca: string
  readonly rootToken: string
  /** A call of the API as root, such as `('POST', 'sys/mounts/transit', {type: 'transit'})`; throws unless it is 2xx. */
  call(method: string, path: string, body?: object): Promise<Readonly<Record<string, unknown>>>
  /** Stops its answers, like a network that drops packets, until `resume`. */
  pause(): Promise<void>
  resume(): void
  /** Ends it at once, like a crash. Its data stays. */
  kill(): Promise<void>
  /** Starts it again and unseals it, with the same data at the same address. */
  restart(): Promise<void>
  /** With its data. */
  stop(): Promise<void>
}

const startMillis = 60_000

/** An initialized and unsealed server, in a temporary folder on a free port of loopback. */
export async function startOpenBao({ tls = false }: { readonly tls?: boolean } = {}): Promise<OpenBao> {
  const file = await openBaoBinary()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openbao-'))
  const data = join(folder, 'data')
  mkdirSync(data)
  const [certificate, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  writeFileSync(certificate, testServerCertificate)
  writeFileSync(key, testServerKey, { mode: 0o600 })
  const port = await freePort()
  const address = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`
  let child: ChildProcess | undefined
  let output = ''
  const atExit = (): void => {
    child?.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', atExit)

  let secrets: { readonly token: string; readonly unseal: string } | undefined
  const request = async (method: string, path: string, body?: object): Promise<Readonly<Record<string, unknown>>> => {
    const { status, text } = await send(`${address}/v1/${path}`, method, secrets?.token, body)
    if (status < 200 || status > 299) throw new Error(`${method} ${path}: ${status} ${text}\nIts log: ${output.trim()}`)
    return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
  }

  const ownArgs = ['-address', `127.0.0.1:${port}`, '-data', data]
  if (tls) ownArgs.push('-tls-cert', certificate, '-tls-key', key)
  const settings = join(folder, 'server.json')
  const files = tls ? { tls_cert_file: certificate, tls_key_file: key } : { tls_disable: true }
  const listener = { tcp: { address: `127.0.0.1:${port}`, ...files } }
  writeFileSync(settings, JSON.stringify({ storage: { file: { path: data } }, listener, disable_mlock: true }))
  const args = file === installed() ? ['server', `-config=${settings}`] : ownArgs

  async function start(): Promise<void> {
    const started = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    child = started
    output = ''
    started.stderr?.on('data', (chunk) => {
      output = `${output}${chunk}`.slice(-2000)
    })
    const end = performance.now() + startMillis
    for (;;) {
      const answer = await send(`${address}/v1/sys/seal-status`, 'GET', undefined).catch(() => undefined)
      if (answer?.status === 200) break
      if (started.exitCode !== null || performance.now() > end) throw new Error(`it did not start: ${output.trim()}`)
      await new Promise((resume) => setTimeout(resume, 50))
    }
    if (secrets === undefined) {
      const made = await request('PUT', 'sys/init', { secret_shares: 1, secret_threshold: 1 })
      secrets = { token: String(made['root_token']), unseal: String((made['keys'] as unknown[])[0]) }
    }
    await request('PUT', 'sys/unseal', { key: secrets.unseal })
    while ((await send(`${address}/v1/sys/health`, 'GET', undefined)).status !== 200) {
      if (performance.now() > end) throw new Error(`it stays sealed: ${output.trim()}`)
      await new Promise((resume) => setTimeout(resume, 50))
    }
  }

  async function kill(): Promise<void> {
    const running = child
    child = undefined
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const ended = new Promise((resume) => running.once('exit', resume))
    running.kill('SIGKILL')
    await ended
  }

  async function stop(): Promise<void> {
    process.off('exit', atExit)
    await kill()
    rmSync(folder, { recursive: true, force: true })
  }

  try {
    await start()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    address,
    ca: testServerCertificate,
    rootToken: secrets?.token ?? '',
    call: request,
    pause: async () => {
      if (child?.pid !== undefined) await pauseProcess(child.pid)
    },
    resume: () => void child?.kill('SIGCONT'),
    kill,
    restart: async () => {
      await kill()
      await start()
    },
    stop,
  }
}

async function send(
  url: string,
  method: string,
  token: string | undefined,
  body?: object,
): Promise<{ readonly status: number; readonly text: string }> {
  const { request } = await import(url.startsWith('https:') ? 'node:https' : 'node:http')
  const headers = token === undefined ? {} : { 'x-vault-token': token }
  return new Promise((resolve, reject) => {
    const options = { method, headers, ca: testServerCertificate, signal: AbortSignal.timeout(20_000) }
    request(url, options, (answer: import('node:http').IncomingMessage) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }))
    })
      .on('error', reject)
      .end(body === undefined ? undefined : JSON.stringify(body))
  })
}
