import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { sha256 } from './archive.ts'
import packages from './runtime-packages.json' with { type: 'json' }

/** Processors, as container images name them. */
export const architectures = ['amd64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

/** What was downloaded is kept; it is checked each time. */
const downloads = resolve('.cache/release')

/** The Node.js program for a processor: of the version and with the hash that package-lock.json has. */
export function nodeProgram(architecture: Architecture): string {
  const { node: name } = packages[architecture]
  const { packages: locked } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
  const { version, integrity } = locked[`node_modules/${name}`]
  const program = join('node_modules', name, 'bin/node')
  if (existsSync(program)) return program
  const archive = join(downloads, `${name}-${version}.tgz`)
  if (!existsSync(archive)) {
    const folder = mkdtempSync(join(made(downloads), 'npm-'))
    execFileSync('npm', ['pack', '--silent', '--pack-destination', folder, `${name}@${version}`], { stdio: 'pipe' })
    renameSync(join(folder, `${name}-${version}.tgz`), archive)
    rmSync(folder, { recursive: true })
  }
  const hash = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
  if (hash !== integrity) throw new Error(`${archive} has the hash ${hash}, but package-lock.json has ${integrity}`)
  execFileSync('tar', ['-C', made(join(downloads, name)), '--strip-components=1', '-xzf', archive, 'package/bin/node'])
  return join(downloads, name, 'bin/node')
}

/** Copies the shared libraries that Node.js needs, with their copyright notices, from the packages of Debian. */
export function placeLibraries(root: string, architecture: Architecture): void {
  for (const [path, hash] of Object.entries(packages[architecture].debian)) {
    const file = join(made(downloads), basename(path))
    if (!existsSync(file)) fetchDebian(path, file)
    if (sha256(readFileSync(file)) !== hash) {
      rmSync(file)
      throw new Error(`${basename(path)} does not have the hash in release/runtime-packages.json`)
    }
    const unpacked = mkdtempSync(join(downloads, 'deb-'))
    execFileSync('dpkg-deb', ['-x', file, unpacked])
    const wanted = ['{lib,usr/lib}/*-linux-gnu*/*.so.*', 'lib*/ld-linux*', 'usr/share/doc/*/copyright']
    for (const name of globSync(wanted, { cwd: unpacked })) {
      mkdirSync(join(root, dirname(name)), { recursive: true })
      cpSync(join(unpacked, name), join(root, name), { verbatimSymlinks: true })
    }
    rmSync(unpacked, { recursive: true })
  }
}

/** With the client and from the mirror of this machine. A package that Debian replaced is no longer there. */
function fetchDebian(path: string, file: string): void {
  const mirrors = execFileSync('apt-get', ['indextargets', '--format', '$(REPO_URI)', 'Identifier: Packages'], {
    encoding: 'utf8',
  })
  const mirror = mirrors.split('\n').find((uri) => /\/debian\/?$/.test(uri))
  if (mirror === undefined) throw new Error('apt has no mirror of Debian')
  try {
    execFileSync('/usr/lib/apt/apt-helper', ['download-file', new URL(path, mirror).href, file], { stdio: 'pipe' })
  } catch (cause) {
    throw new Error(`Debian no longer has ${path}: enter its successor in release/runtime-packages.json`, { cause })
  }
  chmodSync(file, 0o644)
}

function made(folder: string): string {
  mkdirSync(folder, { recursive: true })
  return folder
}
