import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { freePort } from '#testing/free-port.ts'
import { until } from '#testing/gateway-process.ts'

export interface MeasuredGateway {
  readonly port: number
  readonly token: string
  readonly readyMs: number
  residentMegabytes(): number
  /** Without the pages of mapped files, which the system can reclaim. */
  ownMegabytes(): number
  /** Of all its threads, since it started. */
  cpuSeconds(): number
  stop(): Promise<void>
}

/** Of /proc, on every Linux. */
const ticksPerSecond = 100

const program = (): string => process.env['GATEHOUSE_PROGRAM'] ?? 'bin/gatehouse'

/** A gateway process without a log, timed from its start until it is ready. The token is for `subject`. */
export async function startMeasured(
  config: string,
  dataFolder: string,
  database?: string,
  subject = 'idp',
  more: readonly string[] = [],
): Promise<MeasuredGateway> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const args = ['serve', '--config', config, '--data', dataFolder, '--listen', `127.0.0.1:${port}`, '--metrics', 'off']
  if (database !== undefined) args.push('--database', database)
  args.push(...more)
  const started = performance.now()
  const child = spawn(program(), args, { stdio: 'ignore', env: { ...process.env, GATEHOUSE_URL: url } })
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`gatehouse ended with ${child.exitCode}`)
    return (await fetch(`${url}/ready`).catch(() => undefined))?.ok === true
  }, 60_000)
  const readyMs = performance.now() - started
  const mint = ['token', 'mint', '--data', dataFolder, '--issuer', `${url}/dev-issuer`, '--subject', subject]
  return {
    port,
    readyMs,
    token: execFileSync(program(), mint, { encoding: 'utf8' }).trim(),
    residentMegabytes: () => statusMegabytes(child.pid, /VmRSS:\s+(\d+)/),
    ownMegabytes: () => statusMegabytes(child.pid, /RssAnon:\s+(\d+)/),
    cpuSeconds: () => {
      const [, fields = ''] = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')
      const [user = 0, system = 0] = fields.split(' ').slice(11, 13).map(Number)
      return (user + system) / ticksPerSecond
    },
    stop: async () => {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}

function statusMegabytes(pid: number | undefined, line: RegExp): number {
  const [, kilobytes = '0'] = line.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) / 1024
}
