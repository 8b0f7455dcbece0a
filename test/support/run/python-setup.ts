import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'
import { isOnlyNpm, missingPart } from '#testing/run/missing-part.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The Python of a virtual environment with the outside judges; empty if none could be created. */
    judgesPython: string
  }
}

const requirements = 'test/support/scim/python/requirements.txt'
const cache = '.cache'
const installMillis = 300_000
const run = promisify(execFile)

/** Vitest's global setup: the outside judges in a virtual environment, created once for each list of versions. */
export default async function setup(project: TestProject): Promise<void> {
  if (isOnlyNpm()) {
    project.provide('judgesPython', '')
    return
  }
  try {
    project.provide('judgesPython', await judgesPython())
  } catch (error) {
    missingPart('the outside SCIM judges, which need python3 with venv and pip', error)
    project.provide('judgesPython', '')
  }
}

/** The Python of the environment, installed if it is not there yet. */
export async function judgesPython(): Promise<string> {
  const { stdout: version } = await run('python3', ['--version'])
  const key = createHash('sha256')
    .update(version)
    .update(await readFile(requirements))
    .digest('hex')
  const folder = join(cache, `judges-${key.slice(0, 12)}`)
  if (!existsSync(folder)) await install(folder)
  return join(folder, 'bin', 'python')
}

/** Only a complete environment gets its name, even if two runs create it at the same time. */
async function install(folder: string): Promise<void> {
  const draft = `${folder}.${process.pid}`
  const options = { timeout: installMillis }
  try {
    await mkdir(cache, { recursive: true })
    await run('python3', ['-m', 'venv', draft], options)
    const pip = ['-m', 'pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check']
    await run(join(draft, 'bin', 'python'), [...pip, '--requirement', requirements], options)
    await rename(draft, folder)
  } catch (error) {
    if (!existsSync(folder)) throw error
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}
