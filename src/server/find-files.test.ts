import { existsSync, globSync, readFileSync } from 'node:fs'
import { createRequire, findPackageJSON } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { fileNamed } from '#server/main.ts'

const namedIn = (file: string): string[] =>
  Array.from(
    readFileSync(file, 'utf8').matchAll(/(?:from|import|import\()\s*['"]([^'"]+)['"]/g),
    ([, name = '']) => name,
  )

test('each file of the gateway is found where Node.js finds it', () => {
  const wrong: string[] = []
  const seen = new Set<string>()
  for (const file of globSync('src/**/*.ts').filter((name) => !name.endsWith('.test.ts'))) {
    const parent = pathToFileURL(resolve(file)).href
    for (const specifier of namedIn(file).filter((name) => /^[#.].*\.ts$/.test(name))) {
      const asked = specifier.startsWith('#') ? specifier : join(dirname(file), specifier)
      if (seen.has(asked)) continue
      seen.add(asked)
      const found = fileNamed(specifier, parent)?.url
      const expected = pathToFileURL(createRequire(parent).resolve(specifier)).href
      if (found !== expected) wrong.push(`${file}: ${specifier}`)
    }
  }
  expect(wrong).toEqual([])
  expect(seen.size).toBeGreaterThan(500)
})

test.each([
  ['zod', 'node_modules/zod/v4'],
  ['jose', 'node_modules/jose/dist/webapi'],
])('each file of %s is an ES module, and exists', (_, folder) => {
  const files = globSync(`${folder}/**/*.js`)
  expect(files.length).toBeGreaterThan(20)
  const wrong: string[] = []
  for (const file of files) {
    const parent = pathToFileURL(resolve(file)).href
    for (const specifier of namedIn(file).filter((name) => /^\..*\.js$/.test(name))) {
      const { url = '', format } = fileNamed(specifier, parent) ?? {}
      if (format !== 'module' || !existsSync(fileURLToPath(url))) wrong.push(`${file}: ${specifier}`)
    }
  }
  expect(wrong).toEqual([])
  const scopes = new Set(files.map((file) => findPackageJSON('./', pathToFileURL(resolve(file))) ?? ''))
  for (const scope of scopes) expect(JSON.parse(readFileSync(scope, 'utf8'))).toMatchObject({ type: 'module' })
})

test('everything else is looked up', () => {
  const own = new URL('./app.ts', import.meta.url).href
  const foreign = 'file:///elsewhere/node_modules/other/index.js'
  for (const specifier of ['fastify', 'node:fs', './data.json', '@scope/name']) {
    expect(fileNamed(specifier, own)).toBeUndefined()
  }
  for (const specifier of ['#inner.ts', './a.ts', './a.js', 'zod'])
    expect(fileNamed(specifier, foreign)).toBeUndefined()
})
