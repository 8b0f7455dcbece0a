import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

export interface BuiltFile {
  /** Below the folder, such as `assets/index-1234.js`. */
  readonly name: string
  readonly content: Uint8Array
}

/** A younger asset may belong to a concurrent build. */
const graceMillis = 10 * 60_000
/** This build and the previous one. */
const keptBuilds = 2
const compressed = /\.(?:js|css|svg|json)$/

/**
 * Writes a build into the folder so that a reader of the page finds all its assets at any time, even during other
 * builds: names of assets change with their content, so they are added, and the page comes last. The assets of the
 * previous build stay, for open pages; older ones are removed.
 */
export async function placeBuild(folder: string, files: readonly BuiltFile[], now = Date.now()): Promise<void> {
  await mkdir(`${folder}/assets`, { recursive: true })
  const assets = files.filter(({ name }) => name.startsWith('assets/'))
  await Promise.all(assets.map(({ name, content }) => placeAsset(`${folder}/${name}`, content, new Date(now))))
  const others = files.filter((file) => !assets.includes(file) && file.name !== 'index.html')
  const page = files.filter(({ name }) => name === 'index.html')
  for (const { name, content } of [...others, ...page]) await writeWhole(`${folder}/${name}`, content)
  const builds = await noteBuild(`${folder}/builds.json`, assets.map(({ name }) => name.slice('assets/'.length)).sort())
  await sweep(`${folder}/assets`, new Set(builds.flat()), now - graceMillis)
}

/** The plain file comes last: if it exists, its copies do. */
async function placeAsset(path: string, content: Uint8Array, now: Date): Promise<void> {
  const copies = compressed.test(path) ? [`${path}.br`, `${path}.gz`] : []
  const placed = await readFile(path).catch(() => undefined)
  if (placed?.equals(content) === true && (await renew([...copies, path], now))) return
  if (copies.length > 0) {
    const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } }
    await writeWhole(`${path}.br`, await promisify(brotliCompress)(content, quality))
    await writeWhole(`${path}.gz`, await promisify(gzip)(content, { level: 9 }))
  }
  await writeWhole(path, content)
}

/** False if one of them is missing. */
async function renew(files: readonly string[], now: Date): Promise<boolean> {
  const renewed = await Promise.allSettled(files.map((file) => utimes(file, now, now)))
  return renewed.every(({ status }) => status === 'fulfilled')
}

/** No reader sees a partial file. */
async function writeWhole(path: string, content: Uint8Array | string): Promise<void> {
  const aside = `${path}.${randomUUID()}.part`
  await writeFile(aside, content)
  await rename(aside, path)
}

/** The names of the assets of the builds to keep, the latest first. Repeating a build does not add one. */
async function noteBuild(path: string, names: readonly string[]): Promise<readonly (readonly string[])[]> {
  const known = await readFile(path, 'utf8')
    .then(readBuilds)
    .catch(() => [])
  const before = known.filter((build) => build.join() !== names.join())
  const builds = [names, ...before].slice(0, keptBuilds)
  await writeWhole(path, JSON.stringify(builds))
  return builds
}

function readBuilds(text: string): readonly (readonly string[])[] {
  const builds: unknown = JSON.parse(text)
  return Array.isArray(builds) ? builds.filter((build) => Array.isArray(build)) : []
}

async function sweep(folder: string, kept: ReadonlySet<string>, before: number): Promise<void> {
  for (const name of await readdir(folder)) {
    if (kept.has(name.replace(/\.(?:br|gz)$/, ''))) continue
    const found = await stat(`${folder}/${name}`).catch(() => undefined)
    if (found !== undefined && found.mtimeMs < before) await rm(`${folder}/${name}`, { force: true })
  }
}
