import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandOutput } from '#testing/gateway/command.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'

/** The program: the bundle of a release, in tiers whose setup makes one, which starts in half the time. */
export const gatehouse = process.env['GATEHOUSE_PROGRAM'] ?? 'bin/gatehouse'

export interface GatewayProcess {
  readonly url: string
  readonly metricsUrl: string
  readonly dataFolder: string
  readonly process: ChildProcess
  /** Its output so far. */
  output(): string
  /** A token of the development issuer, as a user would get one. */
  token(...args: string[]): Promise<string>
  /** SIGTERM, and its exit code. */
  stop(): Promise<number>
}

export interface GatewayProcessOptions {
  readonly config: string
  readonly args?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** Kept between two starts if given; else a new one that is removed at the end. */
  readonly dataFolder?: string
  /** The same one between two starts; else a free one. */
  readonly port?: number
  /** Another `bin/gatehouse` than that of the tier. */
  readonly program?: string
  /** Starts `crashing-gateway.ts`, which crashes at the point in the environment. */
  readonly crashes?: boolean
  /** Listens with the certificate of `test-certificates.ts`. */
  readonly tls?: boolean
}

/**
 * Starts `gatehouse serve` and resolves when it is ready; rejects with its output if it ends before. A port that
 * another process takes first is replaced.
 */
export async function startGatewayProcess(options: GatewayProcessOptions): Promise<GatewayProcess> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(options)
    } catch (error) {
      const isTaken = error instanceof Error && error.message.includes('EADDRINUSE')
      if (!isTaken || options.port !== undefined || attempt >= 3) throw error
    }
  }
}

async function startOnce(options: GatewayProcessOptions): Promise<GatewayProcess> {
  const [port, metricsPort] = [options.port ?? (await freePort()), await freePort()]
  const url = `${options.tls === true ? 'https' : 'http'}://127.0.0.1:${port}`
  const metricsUrl = `http://127.0.0.1:${metricsPort}`
  const dataFolder = options.dataFolder ?? mkdtempSync(join(tmpdir(), 'gatehouse-story-'))
  const args = ['serve', '--config', options.config, '--data', dataFolder]
  if (options.tls === true) args.push(...certificateArgs(dataFolder))
  args.push('--listen', `127.0.0.1:${port}`, '--metrics', `127.0.0.1:${metricsPort}`, ...(options.args ?? []))
  const environment = { ...process.env, GATEHOUSE_URL: url, ...options.environment }
  const crashing = ['test/support/gateway/crashing-gateway.ts', ...args]
  const [program, words] = options.crashes === true ? ['bin/node', crashing] : [options.program ?? gatehouse, args]
  const child = spawn(program, words, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  }
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`gatehouse ended with ${child.exitCode}:\n${output}`)
    return (await fetch(`${options.tls === true ? metricsUrl : url}/ready`).catch(() => undefined))?.ok === true
  }, 150_000).catch((error: unknown) => {
    child.kill('SIGKILL')
    throw error
  })
  return {
    url,
    metricsUrl,
    dataFolder,
    process: child,
    output: () => output,
    token: async (...more) => {
      const place = ['--data', dataFolder, '--issuer', `${url}/dev-issuer`]
      return (await commandOutput('token', 'mint', ...place, ...more)).trim()
    },
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, 'exit')
        child.kill('SIGTERM')
        await ended
      }
      if (options.dataFolder === undefined) rmSync(dataFolder, { recursive: true, force: true })
      return child.exitCode ?? -1
    },
  }
}

function certificateArgs(folder: string): string[] {
  const [certificate, key] = [join(folder, 'listener.pem'), join(folder, 'listener-key.pem')]
  writeFileSync(certificate, testServerCertificate)
  writeFileSync(key, testServerKey, { mode: 0o600 })
  return ['--tls-cert', certificate, '--tls-key', key]
}

/** Waits until `condition` is true; rejects after `ms`, or with the error of the condition. */
export async function until(condition: () => Promise<boolean>, ms: number): Promise<void> {
  const started = Date.now()
  while (!(await condition())) {
    const waited = Date.now() - started
    if (waited > ms) throw new Error(`timed out after ${ms} ms`)
    // Rarely after a long wait: most conditions send a request.
    await new Promise((resolve) => setTimeout(resolve, Math.min(25 + waited / 10, 500)))
  }
}
