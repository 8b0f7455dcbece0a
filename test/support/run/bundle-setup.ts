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
const dayMillis = 24 * 60 * 60 * 1000

/**
 * Bundles the gateway as a release does, so that its processes in tests are what users run. The same sources always get
 * the same folder, since Node.js keeps compiled code by file name.
 */
export default async function setup(): Promise<void> {
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
  const bundle = join(folder, hashOf(made))
  if (existsSync(bundle)) rmSync(made, { recursive: true })
  else renameSync(made, bundle)
  process.env['GATEHOUSE_PROGRAM'] = join(bundle, 'bin/gatehouse')
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
