import { globSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import process from 'node:process'
import { sha256 } from './archive.ts'
import packages from './runtime-packages.json' with { type: 'json' }

interface Hash {
  readonly alg: 'SHA-256' | 'SHA-512'
  readonly content: string
}

/** What others made that is part of a release. */
export interface Component {
  readonly name: string
  readonly version: string
  /** As an SPDX expression. */
  readonly license: string
  readonly purl: string
  /** The name that vulnerability databases know it by, where the purl isn't enough. */
  readonly cpe?: string
  /** Of the archive that it comes in, by algorithm and in hexadecimal digits. */
  readonly hash?: Hash
  /** The texts of its license files. */
  readonly notices: readonly string[]
  /** The purls of what it uses. */
  readonly dependsOn: readonly string[]
  /** Name and version of what is compiled into it. */
  readonly inside?: Readonly<Record<string, string>>
}

/** What is part of a release, and the purls of what its own code uses. */
export interface Contents {
  readonly components: readonly Component[]
  readonly direct: readonly string[]
}

/** An entry of package-lock.json; its key is its folder. */
interface Locked {
  readonly version: string
  readonly integrity?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  /** Some packages name here what they import if it is there, and nowhere else. */
  readonly peerDependenciesMeta?: Readonly<Record<string, unknown>>
}

const lock: Readonly<Record<string, Locked>> = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages
const { name: ownName } = JSON.parse(readFileSync('package.json', 'utf8'))
const npmPurl = (name: string, version: string): string => `pkg:npm/${name.replace('@', '%40')}@${version}`
const nodePurl = `pkg:generic/nodejs@${process.versions.node}`

/** Versions of interfaces and of data, which are no programs. */
const noPrograms: readonly string[] = ['node', 'modules', 'napi', 'unicode', 'cldr', 'tz']

/** The packages of the files that a bundle was made of, and Node.js with its libraries. */
export function contentsOf(sources: readonly string[]): Contents {
  const folders = new Set<string>()
  for (const source of sources) {
    const [file = ''] = source.replace(/^\0/, '').split('?')
    if (file.includes('/node_modules/')) folders.add(relative(process.cwd(), folderOf(file)))
  }
  const debian = debianPackages()
  const programs = Object.values(packages).map(({ node }) => programPackage(node, debian))
  const all = [...[...folders].map((folder) => npmPackage(folder, folders)), nodeJs(programs), ...programs, ...debian]
  const found = new Map(all.map((one) => [one.purl, one]))
  // The root of the lock is the gateway, and its folder portal the portal.
  const direct = new Set([...usedBy('', folders), ...usedBy('portal', folders), nodePurl])
  return { components: [...found.values()].toSorted((a, b) => (a.purl < b.purl ? -1 : 1)), direct: [...direct].sort() }
}

/** Some packages have more package.json files, without a name or version, in their folders. */
function folderOf(file: string): string {
  const [, root = ''] = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file) ?? []
  return root
}

function npmPackage(folder: string, bundled: ReadonlySet<string>): Component {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (typeof license !== 'string') throw new Error(`${name} ${version} states no license`)
  const notices = globSync('{LICEN[CS]E,LICEN[CS]E.*,licen[cs]e,licen[cs]e.*,NOTICE,NOTICE.*}', { cwd: folder })
  return {
    name,
    version,
    license,
    purl: npmPurl(name, version),
    hash: lockedHash(folder),
    notices: notices.sort().map((file) => readFileSync(join(folder, file), 'utf8')),
    dependsOn: usedBy(folder, bundled),
  }
}

function lockedHash(folder: string): Hash {
  const [alg, base64 = ''] = lock[folder]?.integrity?.split('-') ?? []
  if (alg !== 'sha512') throw new Error(`package-lock.json has no SHA-512 hash of ${folder}`)
  return { alg: 'SHA-512', content: Buffer.from(base64, 'base64').toString('hex') }
}

/** The bundled packages that one uses, also through packages of which nothing is in the bundle. */
function usedBy(folder: string, bundled: ReadonlySet<string>): string[] {
  const [found, seen] = [new Set<string>(), new Set([folder])]
  const visit = (from: string): void => {
    const entry = lock[from]
    const peers = { ...entry?.peerDependencies, ...entry?.peerDependenciesMeta }
    // The portal is built from what its package needs for development.
    const forBuild = from === 'portal' ? entry?.devDependencies : {}
    const all = { ...entry?.dependencies, ...entry?.optionalDependencies, ...peers, ...forBuild }
    for (const name of Object.keys(all)) {
      const place = installed(name, from)
      if (place === undefined || seen.has(place)) continue
      seen.add(place)
      if (bundled.has(place)) found.add(npmPurl(name, lock[place]?.version ?? ''))
      else visit(place)
    }
  }
  visit(folder)
  return [...found].sort()
}

/** The folder of a package that another one imports: its own, or that of a folder above. */
function installed(name: string, from: string): string | undefined {
  const above = from.split('/').map((_, at, parts) => parts.slice(0, parts.length - at).join('/'))
  return [...above.map((folder) => `${folder}/node_modules/${name}`), `node_modules/${name}`].find(
    (place) => lock[place] !== undefined,
  )
}

/** The runtime as its project releases it, with what it contains: advisories name these, and not packages of npm. */
function nodeJs(programs: readonly Component[]): Component {
  const { node: version } = process.versions
  const inside = Object.entries(process.versions).filter(([name, text]) => !noPrograms.includes(name) && text !== '')
  return {
    name: 'nodejs',
    version,
    license: 'MIT',
    purl: nodePurl,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    notices: [],
    dependsOn: programs.map(({ purl }) => purl),
    inside: Object.fromEntries(inside.map(([name, text = '']) => [name, text])),
  }
}

/** The package of npm that the program of a processor comes in. */
function programPackage(name: string, debian: readonly Component[]): Component {
  const folder = `node_modules/${name}`
  const { version = '' } = lock[folder] ?? {}
  const architecture = Object.entries(packages).find(([, { node }]) => node === name)?.[0]
  const libraries = debian.filter(({ purl }) => purl.endsWith(`?arch=${architecture}`))
  return {
    name,
    version,
    license: 'MIT',
    purl: npmPurl(name, version),
    hash: lockedHash(folder),
    notices: globSync('node_modules/node-linux-*/LICENSE').map((file) => readFileSync(file, 'utf8')),
    dependsOn: libraries.map(({ purl }) => purl),
  }
}

/** Version and license as Debian states them: the libraries of GCC allow linking by an exception. */
function debianPackages(): Component[] {
  return Object.entries(packages).flatMap(([architecture, { debian }]) =>
    Object.entries(debian).map(([path, content]) => {
      const [name = '', version = ''] = basename(path).split('_')
      const license = name === 'libc6' ? 'LGPL-2.1-or-later' : 'GPL-3.0-or-later WITH GCC-exception-3.1'
      const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`
      return { name, version, license, purl, hash: { alg: 'SHA-256' as const, content }, notices: [], dependsOn: [] }
    }),
  )
}

/** A CycloneDX document. Its number follows from its content, so that two builds have the same. */
export function softwareBillOfMaterials(version: string, { components, direct }: Contents): string {
  const own = npmPurl(ownName, version)
  const content = {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: { type: 'application', 'bom-ref': own, name: 'gatehouse', version, purl: own } },
    components: components.map(({ name, version: of, license, purl, cpe, hash, inside }) => ({
      type: purl === nodePurl ? 'platform' : 'library',
      'bom-ref': purl,
      name,
      version: of,
      ...(hash === undefined ? {} : { hashes: [hash] }),
      licenses: [/ (?:OR|AND|WITH) |^\(/.test(license) ? { expression: license } : { license: { id: license } }],
      ...(cpe === undefined ? {} : { cpe }),
      purl,
      ...(inside === undefined ? {} : { components: Object.entries(inside).map(partOf) }),
    })),
    dependencies: [
      { ref: own, dependsOn: direct },
      ...components.map(({ purl, dependsOn }) => ({ ref: purl, dependsOn })),
    ],
  }
  const hash = sha256(JSON.stringify(content))
  const parts = [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `5${hash.slice(13, 16)}`,
    `8${hash.slice(17, 20)}`,
    hash.slice(20, 32),
  ]
  return `${JSON.stringify({ serialNumber: `urn:uuid:${parts.join('-')}`, ...content }, null, 2)}\n`
}

const partOf = ([name, version]: [string, string]) => {
  const purl = `pkg:generic/${name}@${encodeURIComponent(version)}`
  return { type: 'library', 'bom-ref': `${nodePurl}#${name}`, name, version, purl }
}

/** The licenses of all packages of others, each text once. */
export function licenseTexts(components: readonly Component[]): string {
  const byText = new Map<string, string[]>()
  for (const { name, version, license, notices } of components) {
    const text = notices.map((one) => one.trim()).join('\n\n') || `License: ${license}`
    byText.set(text, [...(byText.get(text) ?? []), `${name} ${version} (${license})`])
  }
  const line = '-'.repeat(80)
  const parts = [...byText].map(([text, names]) => `${line}\n${[...new Set(names)].join('\n')}\n${line}\n\n${text}\n`)
  return `Gatehouse contains the following packages, under their own licenses.\n\n${parts.join('\n')}`
}
