import { globSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

/** The layers of docs/architecture.md, each with the layers it may import. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  contract: [],
  kernel: [],
  identity: ['kernel'],
  domain: ['kernel', 'identity'],
  protocols: ['kernel'],
  model: ['kernel', 'identity'],
  storage: ['kernel', 'identity', 'domain', 'protocols'],
  sdk: ['kernel', 'identity', 'domain', 'model', 'contract'],
  'legacy-script': ['kernel', 'identity'],
  config: ['kernel', 'identity', 'domain', 'model', 'sdk', 'legacy-script'],
  engine: ['kernel', 'identity', 'domain', 'model', 'sdk', 'storage', 'protocols'],
  modules: ['kernel', 'identity', 'domain', 'model', 'sdk', 'contract', 'protocols', 'legacy-script'],
  catalog: ['kernel', 'sdk', 'modules'],
  server: [
    'contract',
    'kernel',
    'identity',
    'domain',
    'protocols',
    'model',
    'storage',
    'sdk',
    'config',
    'engine',
    'modules',
    'catalog',
  ],
}

const sources = globSync('src/**/*.ts').sort()
const production = sources.filter((file) => !file.endsWith('.test.ts'))
const layerOf = (file: string): string => file.split('/')[1] ?? ''
const importsOf = (file: string): string[] =>
  Array.from(readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*'([^']+)'/g), (match) => match[1] ?? '')

describe('the source tree', () => {
  test('has sources to check', () => {
    expect(production.length).toBeGreaterThan(100)
    expect([...new Set(production.map(layerOf))].filter((layer) => !(layer in allowed))).toEqual([])
  })

  test('imports follow the allowed directions', () => {
    const wrong = production.flatMap((file) =>
      importsOf(file).flatMap((target) => {
        const to = /^#([\w-]+)\//.exec(target)?.[1]
        if (to === undefined || to === layerOf(file)) return []
        return allowed[layerOf(file)]?.includes(to) ? [] : [`${file} imports ${target}`]
      }),
    )
    expect(wrong).toEqual([])
  })

  test('no file imports itself through others, not even for a type', () => {
    const fileOf = (from: string, to: string): string =>
      to.startsWith('#') ? `src/${to.slice(1)}` : to.startsWith('.') ? relative('.', resolve(dirname(from), to)) : to
    const files = new Set(production)
    const open: string[] = []
    const done = new Set<string>()
    const circles: string[] = []
    const visit = (file: string): void => {
      if (open.includes(file)) circles.push([...open.slice(open.indexOf(file)), file].join(' -> '))
      if (open.includes(file) || done.has(file)) return
      open.push(file)
      for (const to of importsOf(file).map((target) => fileOf(file, target))) if (files.has(to)) visit(to)
      open.pop()
      done.add(file)
    }
    for (const file of production) visit(file)
    expect(circles).toEqual([])
  })

  test('the engine imports only the stores from storage', () => {
    const wrong = production
      .filter((file) => layerOf(file) === 'engine')
      .flatMap((file) =>
        importsOf(file).filter(
          (to) => to.startsWith('#storage/') && !/^#storage\/(?:\w+\/)?(?:[\w-]+-store|run-commit)\.ts$/.test(to),
        ),
      )
    expect(wrong).toEqual([])
  })

  test('a module imports itself and modules/shared only, and modules/shared imports no module', () => {
    const folder = (path: string): string => path.split('/').slice(0, 3).join('/')
    const isShared = (path: string): boolean => path.startsWith('modules/shared/')
    const isWrong = (from: string, to: string): boolean => !isShared(to) && folder(to) !== folder(from)
    const wrong = production
      .filter((file) => layerOf(file) === 'modules')
      .flatMap((file) =>
        importsOf(file)
          .filter((to) => to.startsWith('#modules/') && isWrong(file.slice('src/'.length), to.slice(1)))
          .map((to) => `${file} imports ${to}`),
      )
    expect(wrong).toEqual([])
  })

  test('a relative import never leaves its layer, and test support stays out of production', () => {
    const wrong = production.flatMap((file) =>
      importsOf(file)
        .filter((to) => to.startsWith('#testing/') || (to.startsWith('.') && !to.endsWith('package.json')))
        .filter((to) => {
          if (to.startsWith('#')) return true
          return layerOf(relative('.', resolve(dirname(file), to))) !== layerOf(file)
        })
        .map((to) => `${file} imports ${to}`),
    )
    expect(wrong).toEqual([])
  })

  test('node:http is imported for its types only, since an import of its values costs memory', () => {
    const wrong = production
      .filter((file) => file !== 'src/protocols/plugin/http-thread.ts')
      .filter((file) => /^import (?!type )[^\n]* from 'node:http'/m.test(readFileSync(file, 'utf8')))
    expect(wrong).toEqual([])
  })

  test('no folder has more than 30 files, so that it can be read as a list', () => {
    const folders = Map.groupBy(production, (file) => dirname(file))
    const large = Array.from(folders, ([folder, files]) => `${folder}: ${files.length}`)
    expect(large.filter((line) => Number(line.split(': ')[1]) > 30)).toEqual([])
  })

  test('there are no barrels, catch-all files, test switches or silenced types', () => {
    const named = sources.filter((file) => /\/(?:index|utils?|helpers?|misc|common)\.ts$/.test(file))
    const pattern = /NODE_ENV|VITEST|@ts-(?:ignore|nocheck|expect-error)|\bas any\b|:\s*any\b|\benum\s+\w+\s*\{/
    const silenced = production.filter((file) => pattern.test(readFileSync(file, 'utf8')))
    expect({ named, silenced }).toEqual({ named: [], silenced: [] })
  })
})
