import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { makeBundle } from '../../../release/bundle.ts'

const folder = resolve('.cache/bundles')
/** The program that tests start, if `test/run.ts` or another setup made one. */
export const bundledProgram = 'GATEHOUSE_PROGRAM'
const dayMillis = 24 * 60 * 60 * 1000

/**
 * Bundles the gateway as a release does, so that its processes in tests are what users run. The same sources always get
 * the same folder, since Node.js keeps compiled code by file name.
 */
export default async function setup(): Promise<void> {
  if (process.env[bundledProgram] === undefined) process.env[bundledProgram] = await bundle()
}

/** The program of the bundle. */
export async function bundle(): Promise<string> {
  mkdirSync(folder, { recursive: true })
  for (const name of readdirSync(folder)) {
    const old = join(folder, name)
    if (Date.now() - statSync(old).mtimeMs > dayMillis) rmSync(old, { recursive: true, force: true })
  }
  const made = mkdtempSync(join(folder, 'new-'))
  // The portal that `npm ci` built: to build it again would take ten seconds.
  await makeBundle(made, async (portal) => {
    cpSync('portal/dist', portal, { recursive: true })
    return []
  })
  const [node = ''] = globSync('node_modules/node-linux-*')
  symlinkSync(resolve(node), join(made, 'node'))
  const kept = join(folder, hashOf(made))
  if (existsSync(kept)) rmSync(made, { recursive: true })
  else renameSync(made, kept)
  return join(kept, 'bin/gatehouse')
}

function hashOf(bundle: string): string {
  const hash = createHash('sha256')
  const files = globSync('{bin,lib,migrations,portal,examples}/**/*', { cwd: bundle, withFileTypes: true })
  for (const file of files
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name))
    .sort()) {
    hash.update(file.slice(bundle.length)).update(readFileSync(file))
  }
  return hash.digest('hex').slice(0, 16)
}
