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

const programs = new Map<Architecture, string>()

/** The Node.js program for a processor: of the version and with the hash that package-lock.json has. */
export function nodeProgram(architecture: Architecture): string {
  const program = programs.get(architecture) ?? findNode(architecture)
  programs.set(architecture, program)
  return program
}

function findNode(architecture: Architecture): string {
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
  // Another release may read the one that is there.
  const unpacked = mkdtempSync(join(downloads, 'npm-'))
  execFileSync('tar', ['-C', unpacked, '--strip-components=2', '-xzf', archive, 'package/bin/node'])
  const kept = join(made(join(downloads, name)), 'node')
  renameSync(join(unpacked, 'node'), kept)
  rmSync(unpacked, { recursive: true })
  return kept
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
  const folder = mkdtempSync(join(downloads, 'deb-'))
  const fetched = join(folder, basename(file))
  try {
    execFileSync('/usr/lib/apt/apt-helper', ['download-file', new URL(path, mirror).href, fetched], { stdio: 'pipe' })
    chmodSync(fetched, 0o644)
    renameSync(fetched, file)
  } catch (cause) {
    throw new Error(`Debian no longer has ${path}: enter its successor in release/runtime-packages.json`, { cause })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function made(folder: string): string {
  mkdirSync(folder, { recursive: true })
  return folder
}
