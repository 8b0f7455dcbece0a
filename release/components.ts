import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { sha256 } from './archive.ts'
import packages from './runtime-packages.json' with { type: 'json' }

/** A package of others that is part of a release. */
export interface Component {
  readonly name: string
  readonly version: string
  /** As an SPDX expression. */
  readonly license: string
  readonly purl: string
  /** The texts of its license files. */
  readonly notices: readonly string[]
}

/** The packages of the files that a bundle was made of, and Node.js with its libraries. */
export function componentsOf(sources: readonly string[]): Component[] {
  const manifests = new Set<string>()
  for (const source of sources) {
    const [file = ''] = source.replace(/^\0/, '').split('?')
    if (file.includes('/node_modules/')) manifests.add(manifestOf(file))
  }
  const [node = ''] = globSync('node_modules/node-linux-*/package.json')
  const found = new Map<string, Component>()
  for (const one of [...[...manifests].map(npmPackage), npmPackage(node), ...debianPackages()]) found.set(one.purl, one)
  return [...found.values()].toSorted((a, b) => (a.purl < b.purl ? -1 : 1))
}

/** Some packages have more package.json files, without a name or version, in their folders. */
function manifestOf(file: string): string {
  const [, root = ''] = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file) ?? []
  return join(root, 'package.json')
}

function npmPackage(manifest: string): Component {
  const { name, version, license } = JSON.parse(readFileSync(manifest, 'utf8'))
  if (typeof license !== 'string') throw new Error(`${name} ${version} states no license`)
  const notices = globSync('{LICEN[CS]E,LICEN[CS]E.*,licen[cs]e,licen[cs]e.*,NOTICE,NOTICE.*}', {
    cwd: dirname(manifest),
  })
  return {
    name,
    version,
    license,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    notices: notices.sort().map((file) => readFileSync(join(dirname(manifest), file), 'utf8')),
  }
}

/** Version and license as Debian states them: the libraries of GCC allow linking by an exception. */
function debianPackages(): Component[] {
  return Object.entries(packages).flatMap(([architecture, { debian }]) =>
    Object.keys(debian).map((path) => {
      const [name = '', version = ''] = basename(path).split('_')
      const license = name === 'libc6' ? 'LGPL-2.1-or-later' : 'GPL-3.0-or-later WITH GCC-exception-3.1'
      const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`
      return { name, version, license, purl, notices: [] }
    }),
  )
}

/** A CycloneDX document. Its number follows from its content, so that two builds have the same. */
export function softwareBillOfMaterials(version: string, components: readonly Component[]): string {
  const content = {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        name: 'gatehouse',
        version,
        purl: `pkg:npm/%40gatehouse-iam/gatehouse@${version}`,
      },
    },
    components: components.map(({ name, version: of, license, purl }) => ({
      type: 'library',
      'bom-ref': purl,
      name,
      version: of,
      purl,
      licenses: [/ (?:OR|AND|WITH) |^\(/.test(license) ? { expression: license } : { license: { id: license } }],
    })),
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
