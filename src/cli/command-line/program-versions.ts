import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { arch, platform, release } from 'node:os'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
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

const root = fileURLToPath(new URL('../../../', import.meta.url))

export async function programVersions(): Promise<ProgramVersions> {
  const { node, sqlite, openssl } = process.versions
  const system = `${platform()} ${release()} ${arch()}`
  return { gatehouse: await version(), commit: await commitOf(root), node, sqlite, openssl, system }
}

/** The commit that a release has in its package.json, otherwise that of the checkout. */
async function commitOf(folder: string): Promise<string | undefined> {
  const { default: manifest } = await import('../../../package.json', { with: { type: 'json' } })
  if ('gitHead' in manifest && typeof manifest.gitHead === 'string') return manifest.gitHead
  // Not that of a repository in which an archive was unpacked.
  if (!existsSync(`${folder}.git`)) return undefined
  try {
    const { stdout } = await promisify(execFile)('git', ['-C', folder, 'rev-parse', 'HEAD'], { timeout: 5_000 })
    return stdout.trim()
  } catch {
    return undefined
  }
}
