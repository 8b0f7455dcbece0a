import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from '#testing/gateway/free-port.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import type { Server } from './drive.ts'
import { cpuSecondsOf, megabytesOf, writtenBytesOf } from './process-figures.ts'

export interface MeasuredGateway extends Server {
  readonly pid: number
  readonly token: string
  readonly readyMs: number
  residentMegabytes(): number
  /** Without the pages of mapped files, which the system can reclaim. */
  ownMegabytes(): number
  /** To the disk, since it started. */
  writtenBytes(): number
  stop(): Promise<void>
}

const program = (): string => process.env['GATEHOUSE_PROGRAM'] ?? 'bin/gatehouse'

/** A gateway process whose log is discarded, timed from its start until it is ready. The token is for `subject`. */
export async function startMeasured(
  config: string,
  dataFolder: string,
  database?: string,
  subject = 'idp',
  more: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<MeasuredGateway> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const args = ['serve', '--config', config, '--data', dataFolder, '--listen', `127.0.0.1:${port}`, '--metrics', 'off']
  if (database !== undefined) args.push('--database', database)
  args.push(...more)
  const started = performance.now()
  const child = spawn(program(), args, { stdio: 'ignore', env: { ...process.env, GATEHOUSE_URL: url, ...environment } })
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`gatehouse ended with ${child.exitCode}`)
    return (await fetch(`${url}/ready`).catch(() => undefined))?.ok === true
  }, 180_000)
  const readyMs = performance.now() - started
  const mint = ['token', 'mint', '--data', dataFolder, '--issuer', `${url}/dev-issuer`, '--subject', subject]
  return {
    port,
    readyMs,
    token: execFileSync(program(), mint, { encoding: 'utf8' }).trim(),
    pid: child.pid ?? 0,
    residentMegabytes: () => megabytesOf(child.pid, 'VmRSS'),
    ownMegabytes: () => megabytesOf(child.pid, 'RssAnon'),
    writtenBytes: () => writtenBytesOf(child.pid),
    cpuSeconds: () => cpuSecondsOf(child.pid),
    stop: async () => {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}
