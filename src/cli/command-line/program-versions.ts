import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { arch, platform, release } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { version } from '#kernel/version.ts'

/** This program and what it runs on. */
export interface ProgramVersions {
  readonly gatehouse: string
  /** Of the source. Undefined if neither the package nor a checkout has it. */
  readonly commit: string | undefined
  readonly node: string
  readonly sqlite: string | undefined
  readonly openssl: string | undefined
  readonly system: string
}

export async function programVersions(): Promise<ProgramVersions> {
  const { node, sqlite, openssl } = process.versions
  const system = `${platform()} ${release()} ${arch()}`
  return { gatehouse: await version(), commit: await ownCommit(), node, sqlite, openssl, system }
}

/** The commit that a release has as `gitHead` of its package.json, otherwise that of the checkout. */
async function ownCommit(): Promise<string | undefined> {
  let folder = import.meta.dirname
  while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder)) folder = dirname(folder)
  try {
    const { gitHead } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    if (typeof gitHead === 'string') return gitHead
    // Not that of a repository in which an archive was unpacked.
    if (!existsSync(join(folder, '.git'))) return undefined
    const { stdout } = await promisify(execFile)('git', ['-C', folder, 'rev-parse', 'HEAD'], { timeout: 5_000 })
    return stdout.trim()
  } catch {
    return undefined
  }
}
