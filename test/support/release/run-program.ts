import { execFile } from 'node:child_process'
import process from 'node:process'
import { promisify } from 'node:util'

const start = promisify(execFile)

/** What a program prints on standard output. Rejects unless it ends with 0. */
export async function run(
  program: string,
  args: readonly string[],
  cwd = process.cwd(),
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const running = start(program, args, { cwd, env, maxBuffer: 64 << 20 })
  running.child.stdin?.end()
  return (await running).stdout
}

export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** How a program ended, and what it printed. Rejects only if it could not be started. */
export async function ended(
  program: string,
  args: readonly string[],
  cwd = process.cwd(),
  env: NodeJS.ProcessEnv = process.env,
): Promise<Ended> {
  const running = start(program, args, { cwd, env, maxBuffer: 64 << 20 })
  running.child.stdin?.end()
  return running.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code?: unknown; stdout: string; stderr: string }) => {
      if (typeof error.code !== 'number') throw error
      return { code: error.code, stdout: error.stdout, stderr: error.stderr }
    },
  )
}
