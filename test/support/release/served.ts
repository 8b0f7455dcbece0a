import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'vitest'
import { until } from '#testing/gateway/gateway-process.ts'

export interface Served {
  readonly url: string
  output(): string
}

interface Start {
  readonly program: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** Where it listens. */
  readonly url: string
  /** Where it says that it is ready; `url` if absent. */
  readonly readyAt?: string
}

/** Starts a released program, waits until it is ready, uses it, and stops it: it must end with 0. */
export async function serving(start: Start, use: (served: Served) => Promise<void>): Promise<void> {
  const { program, args, cwd, env, url, readyAt = url } = start
  const child = spawn(program, [...args], { cwd, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  }
  const ended = once(child, 'exit')
  try {
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`gatehouse ended with ${child.exitCode}:\n${output}`)
      return (await fetch(`${readyAt}/ready`).catch(() => undefined))?.ok === true
    }, 120_000)
    await until(async () => output.includes('Listening on'), 30_000)
    await use({ url, output: () => output })
  } finally {
    child.kill('SIGTERM')
    await ended
  }
  expect(child.exitCode).toBe(0)
}
