import { spawn } from 'node:child_process'
import { freePort } from '#testing/free-port.ts'
import { until } from '#testing/gateway-process.ts'

/** A bare Fastify server in its own process: the script gets the port, then `args`. */
export async function startBare(script: string, ...args: string[]): Promise<{ readonly port: number; stop(): void }> {
  const port = await freePort()
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script, String(port), ...args])
  await until(async () => (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)) !== undefined, 10_000)
  return { port, stop: () => void child.kill() }
}
