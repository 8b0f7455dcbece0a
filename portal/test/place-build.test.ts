import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type BuiltFile, placeBuild } from '../place-build.ts'

const hour = 3_600_000
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-build-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** A page that names its assets, and the assets, each with its own name as content. */
const buildOf = (...names: readonly string[]): readonly BuiltFile[] => [
  { name: 'index.html', content: Buffer.from(names.join()) },
  { name: 'manifest.json', content: Buffer.from('{}') },
  ...names.map((name) => ({ name: `assets/${name}`, content: Buffer.from(name) })),
]
const placed = (): string[] => readdirSync(`${folder}/assets`).filter((name) => !/\.(?:br|gz)$/.test(name))
const page = (): string[] => readFileSync(`${folder}/index.html`, 'utf8').split(',')

test('compressible files have compressed copies', async () => {
  await placeBuild(folder, buildOf('a-1.js', 'b-1.woff2'))
  expect(readdirSync(`${folder}/assets`).sort()).toEqual(['a-1.js', 'a-1.js.br', 'a-1.js.gz', 'b-1.woff2'])
  expect(brotliDecompressSync(readFileSync(`${folder}/assets/a-1.js.br`)).toString()).toBe('a-1.js')
  expect(gunzipSync(readFileSync(`${folder}/assets/a-1.js.gz`)).toString()).toBe('a-1.js')
})

test('a reader during builds finds the page with all of its assets', async () => {
  await placeBuild(folder, buildOf('same.js', 'x-0.js'))
  let done = false
  const seen = new Set<string>()
  const reading = (async () => {
    while (!done) {
      const names = page()
      seen.add(names.join())
      const files = new Set(readdirSync(`${folder}/assets`))
      expect(names.flatMap((name) => [name, `${name}.br`, `${name}.gz`]).filter((name) => !files.has(name))).toEqual([])
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  for (let n = 1; n <= 12; n += 1) await placeBuild(folder, buildOf('same.js', `x-${n}.js`), Date.now() + n * hour)
  done = true
  await reading
  expect(seen.size).toBeGreaterThan(3)
})

test('the assets of the previous build stay, older ones are removed, and repeating a build changes nothing', async () => {
  const start = Date.now()
  for (const [n, names] of [['a-1.js'], ['a-2.js'], ['a-3.js'], ['a-3.js']].entries()) {
    await placeBuild(folder, buildOf(...names), start + n * hour)
  }
  expect(placed()).toEqual(['a-2.js', 'a-3.js'])
  expect(page()).toEqual(['a-3.js'])
})

test('files that a concurrent build has just written stay', async () => {
  await placeBuild(folder, buildOf('a-1.js'))
  for (const name of ['young.js', 'old.js']) writeFileSync(`${folder}/assets/${name}`, name)
  utimesSync(`${folder}/assets/old.js`, new Date(0), new Date(0))
  await placeBuild(folder, buildOf('a-1.js'))
  expect(placed()).toEqual(['a-1.js', 'young.js'])
})

test('concurrent builds leave a complete one', async () => {
  await placeBuild(folder, buildOf('x.js'), Date.now() - hour)
  await Promise.all(['a', 'b', 'c'].map((name) => placeBuild(folder, buildOf(`${name}.js`, 'x.js'))))
  expect(page().filter((name) => !placed().includes(name))).toEqual([])
})

test('a missing copy is created again', async () => {
  await placeBuild(folder, buildOf('a-1.js'))
  rmSync(`${folder}/assets/a-1.js.br`)
  await placeBuild(folder, buildOf('a-1.js'))
  expect(readdirSync(`${folder}/assets`).sort()).toEqual(['a-1.js', 'a-1.js.br', 'a-1.js.gz'])
})

test('a broken list of builds, and a truncated file, are repaired', async () => {
  await placeBuild(folder, buildOf('a-1.js'))
  writeFileSync(`${folder}/builds.json`, '{"a":')
  writeFileSync(`${folder}/assets/a-1.js`, 'a-')
  await placeBuild(folder, buildOf('a-1.js'))
  expect(readFileSync(`${folder}/assets/a-1.js`, 'utf8')).toBe('a-1.js')
})
