import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { parse, stringify } from 'yaml'
import { buildPortal } from '../portal/build.ts'
import { commitSeconds, sha256, writeArchive } from './archive.ts'
import { makeBundle } from './bundle.ts'
import { writeChecksums } from './checksums.ts'
import { contentsOf, licenseTexts, softwareBillOfMaterials } from './components.ts'
import { writeImage } from './image.ts'
import { nfpmBinary, placeUnit, writePackages } from './packages.ts'
import { architectures, nodeProgram } from './runtime.ts'

/** `npm run release -- [--sign-key FILE] [--to FOLDER]`: everything that is published, in `dist`. */

const { values } = parseArgs({ options: { 'sign-key': { type: 'string' }, to: { type: 'string', default: 'dist' } } })
const folder = resolve(values.to)
const { version } = JSON.parse(readFileSync('package.json', 'utf8'))

const steps: Readonly<Record<string, () => Promise<void> | void>> = {
  bundle: async () => {
    const contents = contentsOf(await makeBundle(bundle, buildPortal))
    nameCommit(join(bundle, 'package.json'))
    writeFileSync(join(bundle, 'THIRD-PARTY-LICENSES.txt'), licenseTexts(contents.components))
    writeFileSync(join(folder, `gatehouse-${version}.cdx.json`), softwareBillOfMaterials(version, contents))
  },
  archives: async () => {
    const nfpm = await nfpmBinary().catch((error: unknown) => {
      console.log(`No .deb and no .rpm: ${error instanceof Error ? error.message : error}`)
    })
    for (const architecture of architectures) {
      const name = `gatehouse-${version}-linux-${architecture}`
      const staged = join(folder, 'staged', name)
      cpSync(bundle, staged, { recursive: true })
      mkdirSync(join(staged, 'node/bin'), { recursive: true })
      cpSync(nodeProgram(architecture), join(staged, 'node/bin/node'))
      cpSync('release/archive-readme.md', join(staged, 'README.md'))
      if (nfpm !== undefined) await writePackages(join(folder, 'packages'), { nfpm, staged, version, architecture })
      placeUnit(staged)
      writeArchive(join(folder, `${name}.tar.gz`), join(folder, 'staged'), [name])
      rmSync(join(folder, 'staged'), { recursive: true })
    }
  },
  package: () => {
    mkdirSync(join(folder, 'npm'), { recursive: true })
    execFileSync('npm', ['pack', '--silent', '--pack-destination', join(folder, 'npm')], { cwd: bundle, stdio: 'pipe' })
  },
  image: () => writeImage(join(folder, 'image'), bundle, version),
  chart: () => {
    mkdirSync(join(folder, 'chart'), { recursive: true })
    const file = join(folder, 'chart', `gatehouse-${version}.tgz`)
    // Its definitions are a link to deploy/crds, which leads nowhere from an archive.
    writeArchive(file, resolve('deploy/helm'), ['gatehouse'], true)
    const created = new Date(Number(commitSeconds()) * 1000).toISOString()
    const chart = parse(readFileSync('deploy/helm/gatehouse/Chart.yaml', 'utf8'))
    const entry = { ...chart, created, digest: sha256(readFileSync(file)), urls: [`gatehouse-${version}.tgz`] }
    const index = { apiVersion: 'v1', generated: created, entries: { gatehouse: [entry] } }
    writeFileSync(join(folder, 'chart/index.yaml'), stringify(index))
  },
  checksums: () => writeChecksums(folder, basename(bundle), values['sign-key']),
}

/** `gatehouse version` prints it. A tree without Git has none. */
function nameCommit(manifest: string): void {
  const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' })
  if (status !== 0) return
  const content = { ...JSON.parse(readFileSync(manifest, 'utf8')), gitHead: stdout.trim() }
  writeFileSync(manifest, `${JSON.stringify(content, null, 2)}\n`)
}

const bundle = join(folder, 'gatehouse')
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
for (const [name, step] of Object.entries(steps)) {
  const started = performance.now()
  await step()
  console.log(`${name.padEnd(10)} ${((performance.now() - started) / 1000).toFixed(1)} s`)
}
for (const name of globSync(['*', 'npm/*', 'packages/*', 'chart/*'], { cwd: folder }).sort()) {
  const { size } = statSync(join(folder, name))
  if (statSync(join(folder, name)).isFile()) console.log(`${(size / 1e6).toFixed(1).padStart(8)} MB  ${name}`)
}
if (values['sign-key'] === undefined) console.log('Not signed: give a key with --sign-key FILE.')
