import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'

/** What `npm run release` made twice, and where its tests may write. */
export interface Release {
  readonly folder: string
  /** The second one, which one test changes. */
  readonly again: string
  /** The half of the signing key that a publisher gives out. */
  readonly publicKey: string
  /** Not in memory, where a device may not be opened. */
  readonly scratch: string
}

declare module 'vitest' {
  export interface ProvidedContext {
    release: Release
  }
}

const run = promisify(execFile)

/** Vitest's global setup: two releases at the same time, by the command that publishes. */
export default async function setup(project: TestProject): Promise<() => void> {
  mkdirSync('.cache', { recursive: true })
  const scratch = resolve(mkdtempSync('.cache/release-'))
  // Installed programs run as another user there.
  chmodSync(scratch, 0o755)
  const files = mkdtempSync(join(tmpdir(), 'gatehouse-release-'))
  const [key, publicKey] = [join(scratch, 'key.pem'), join(scratch, 'public.pem')]
  const pair = generateKeyPairSync('ed25519')
  writeFileSync(key, pair.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  writeFileSync(publicKey, pair.publicKey.export({ type: 'spki', format: 'pem' }))
  const [folder, again] = [join(files, 'dist'), join(files, 'again')]
  const release = ['release/run.ts', '--sign-key', key, '--to']
  await Promise.all([folder, again].map((target) => run('bin/node', [...release, target], { maxBuffer: 64 << 20 })))
  project.provide('release', { folder, again, publicKey, scratch })
  return () => {
    for (const made of [scratch, files]) rmSync(made, { recursive: true, force: true })
  }
}
