import { spawn } from 'node:child_process'
import { freePort } from '#testing/gateway/free-port.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import type { Server } from './drive.ts'
import { cpuSecondsOf } from './process-figures.ts'

export interface BareServer extends Server {
  stop(): void
}

/** A bare Fastify server in its own process: the script gets the port, then `args`. */
export async function startBare(script: string, ...args: string[]): Promise<BareServer> {
  const port = await freePort()
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script, String(port), ...args])
  await until(async () => (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)) !== undefined, 10_000)
  return { port, cpuSeconds: () => cpuSecondsOf(child.pid), stop: () => void child.kill() }
}
