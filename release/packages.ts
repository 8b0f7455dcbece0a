import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { builtProgram } from '#testing/kubernetes/go-program.ts'
import { commitSeconds, compressed } from './archive.ts'
import { completions, manualPages } from './manual.ts'
import type { Architecture } from './runtime.ts'

const sources = (name: string): string => fileURLToPath(new URL(`packages/${name}`, import.meta.url))

/** The program that makes packages, built from its modules on first use. Throws if Go is missing. */
export const nfpmBinary = (): Promise<string> =>
  builtProgram({
    name: 'nfpm',
    moduleFolder: sources(''),
    module: 'github.com/goreleaser/nfpm/v2',
    package: 'github.com/goreleaser/nfpm/v2/cmd/nfpm',
    cacheFolder: 'nfpm',
    variables: () => ({}),
  })

interface Kind {
  readonly name: 'deb' | 'rpm'
  /** In its own words: what the Node.js inside is linked with, and what creates the user. */
  readonly depends: readonly string[]
  readonly zshFolder: string
  fileName(version: string, architecture: Architecture): string
}

const kinds: readonly Kind[] = [
  {
    name: 'deb',
    depends: ['libc6 (>= 2.28)', 'libstdc++6 (>= 6)', 'passwd'],
    zshFolder: 'vendor-completions',
    fileName: (version, architecture) => `gatehouse_${version}_${architecture}.deb`,
  },
  {
    name: 'rpm',
    depends: ['glibc >= 2.28', 'libstdc++', 'shadow-utils'],
    zshFolder: 'site-functions',
    fileName: (version, architecture) =>
      `gatehouse-${version}-1.${architecture === 'amd64' ? 'x86_64' : 'aarch64'}.rpm`,
  },
]

interface Contents {
  /** The program of `nfpmBinary`. */
  readonly nfpm: string
  /** The folder of a release with its Node.js, which becomes /usr/lib/gatehouse. */
  readonly staged: string
  readonly version: string
  readonly architecture: Architecture
}

interface Parts extends Contents {
  /** The folder with what is made for packages: manual pages and completions of shells, by name. */
  readonly work: string
  readonly pages: readonly string[]
  readonly shells: readonly string[]
}

/** Writes the packages of one processor: the gateway as a service of systemd. */
export async function writePackages(target: string, contents: Contents): Promise<void> {
  const { nfpm, staged, version, architecture } = contents
  const work = resolve(`${staged}-package`)
  mkdirSync(work)
  mkdirSync(target, { recursive: true })
  try {
    const pages = await manualPages(version)
    for (const [name, text] of pages) writeFileSync(join(work, `${name}.gz`), compressed(Buffer.from(text)))
    const completed = await completions()
    for (const [shell, text] of completed) writeFileSync(join(work, shell), text)
    const parts = { ...contents, work, pages: [...pages.keys()], shells: [...completed.keys()] }
    for (const kind of kinds) {
      const config = join(work, `${kind.name}.yaml`)
      writeFileSync(config, stringify(describe(kind, parts)))
      const file = join(target, kind.fileName(version, architecture))
      execFileSync(nfpm, ['package', '--config', config, '--packager', kind.name, '--target', file], {
        env: { ...process.env, SOURCE_DATE_EPOCH: commitSeconds() },
        stdio: 'pipe',
      })
    }
  } finally {
    rmSync(work, { recursive: true })
  }
}

/** The unit and its variables in an archive, which is expected in /opt/gatehouse. */
export function placeUnit(staged: string): void {
  const folder = join(staged, 'systemd')
  mkdirSync(folder)
  const unit = readFileSync('deploy/systemd/gatehouse.service', 'utf8')
  writeFileSync(
    join(folder, 'gatehouse.service'),
    unit.replace('ExecStart=/usr/bin/', 'ExecStart=/opt/gatehouse/bin/').replace(/^Documentation=.*\n/m, ''),
  )
  cpSync('deploy/systemd/environment', join(folder, 'environment'))
}

/** A configuration of nfpm. */
function describe({ depends, zshFolder }: Kind, { staged, work, version, architecture, pages, shells }: Parts): object {
  const places: Readonly<Record<string, string>> = {
    bash: '/usr/share/bash-completion/completions/gatehouse',
    zsh: `/usr/share/zsh/${zshFolder}/_gatehouse`,
    fish: '/usr/share/fish/vendor_completions.d/gatehouse.fish',
  }
  const file = (src: string, dst: string, mode = 0o644) => ({ src, dst, file_info: { mode } })
  const folder = (dst: string) => ({ dst, type: 'dir', file_info: { mode: 0o750, owner: 'root', group: 'gatehouse' } })
  const { description, license } = JSON.parse(readFileSync('package.json', 'utf8'))
  return {
    name: 'gatehouse',
    arch: architecture,
    platform: 'linux',
    version,
    release: '1',
    section: 'net',
    maintainer: 'The Gatehouse maintainers',
    vendor: 'Gatehouse',
    description,
    license,
    depends,
    // A third of the time that gzip takes. Debian 12, Ubuntu 22.04 and Red Hat 9 read it.
    deb: { compression: 'zstd' },
    rpm: { compression: 'zstd', buildhost: 'localhost', group: 'System Environment/Daemons' },
    scripts: {
      preinstall: sources('before-install.sh'),
      postinstall: sources('after-install.sh'),
      preremove: sources('before-remove.sh'),
    },
    contents: [
      { src: staged, dst: '/usr/lib/gatehouse', type: 'tree' },
      { src: '../lib/gatehouse/bin/gatehouse', dst: '/usr/bin/gatehouse', type: 'symlink' },
      file(resolve('deploy/systemd/gatehouse.service'), '/usr/lib/systemd/system/gatehouse.service'),
      folder('/etc/gatehouse'),
      folder('/etc/gatehouse/config'),
      { ...file(resolve('deploy/systemd/environment'), '/etc/gatehouse/environment', 0o600), type: 'config|noreplace' },
      file(join(staged, 'THIRD-PARTY-LICENSES.txt'), '/usr/share/doc/gatehouse/THIRD-PARTY-LICENSES.txt'),
      file(join(staged, 'LICENSE'), '/usr/share/doc/gatehouse/copyright'),
      ...pages.map((page) => file(join(work, `${page}.gz`), `/usr/share/man/man1/${page}.gz`)),
      ...shells.map((shell) => file(join(work, shell), places[shell] ?? '')),
    ],
  }
}
