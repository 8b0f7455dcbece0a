import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import type { ClientMetadata } from 'oidc-provider'
import { until } from '#testing/gateway/gateway-process.ts'

export interface OutsideIssuer {
  readonly url: string
  output(): string
  stop(): Promise<void>
}

/** Starts `oidc-provider` as a second process; resolves when it answers. */
export async function startOutsideIssuer(port: number, clients: readonly ClientMetadata[]): Promise<OutsideIssuer> {
  const env = { ...process.env, OUTSIDE_ISSUER: JSON.stringify({ port, clients }) }
  const child = spawn('bin/node', ['test/support/login/outside-issuer-process.ts'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const url = `http://127.0.0.1:${port}`
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`the issuer ended with ${child.exitCode}:\n${output}`)
    return (await fetch(`${url}/.well-known/openid-configuration`).catch(() => undefined))?.ok === true
  }, 60_000).catch((error: unknown) => {
    child.kill('SIGKILL')
    throw error
  })
  return {
    url,
    output: () => output,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}
