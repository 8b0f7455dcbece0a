import { globSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const sources = globSync('portal/src/**/*.{ts,tsx}').sort()
const production = sources.filter((file) => !/\.test\.tsx?$/.test(file))
const anyImport = /(?:from|import\(|import)\s*'([^']+)'/g
const atOnce = /(?:from|import)\s*'([^']+)'/g
const importsOf = (file: string, pattern = anyImport): string[] =>
  Array.from(readFileSync(file, 'utf8').matchAll(pattern), (match) => match[1] ?? '')
/** app, api, components, pages/<page>. */
const partOf = (file: string): string =>
  file.startsWith('portal/src/pages/') ? file.split('/').slice(2, 4).join('/') : (file.split('/')[2] ?? '')

/** What contracts consist of, and the constants that pages share with those of the gateway. */
const besideContracts = [
  '#kernel/wire.ts',
  '#sdk/page/languages.ts',
  '#sdk/page/colors.ts',
  '#sdk/page/default-colors.ts',
]

describe('the source tree of the portal', () => {
  test('has sources to check', () => expect(production.length).toBeGreaterThan(50))

  test('it imports only the contracts of the gateway', () => {
    const isContract = (to: string): boolean =>
      /^#(?:features\/[\w-]+\/contract\/|sdk\/contract\/)/.test(to) || besideContracts.includes(to)
    const wrong = production.flatMap((file) =>
      importsOf(file)
        .filter((to) => to.startsWith('#') && !isContract(to))
        .concat(importsOf(file).filter((to) => to.startsWith('node:') || to.startsWith('../../../..')))
        .map((to) => `${file} imports ${to}`),
    )
    expect(wrong).toEqual([])
  })

  test('no page imports another page, and shared parts import no page', () => {
    const wrong = production.flatMap((file) =>
      // The frame around the pages loads them on demand.
      importsOf(file, partOf(file) === 'app' ? atOnce : anyImport)
        .filter((to) => to.startsWith('.'))
        .map((to) => relative('.', resolve(dirname(file), to)))
        .filter((to) => to.startsWith('portal/src/pages/') && partOf(to) !== partOf(file))
        .map((to) => `${file} imports ${to}`),
    )
    expect(wrong).toEqual([])
  })

  test('files are at most 300 lines', () => {
    const long = production.filter((file) => readFileSync(file, 'utf8').split('\n').length - 1 > 300)
    expect(long).toEqual([])
  })

  test('no file is a barrel or a catch-all, silences types, or runs text as code', () => {
    const named = sources.filter((file) => /\/(?:index|utils?|helpers?|misc|common)\.tsx?$/.test(file))
    const pattern =
      /@ts-(?:ignore|nocheck|expect-error)|\bas any\b|:\s*any\b|dangerouslySetInnerHTML|\binnerHTML\b|\beval\(|new Function/
    const wrong = production.filter((file) => pattern.test(readFileSync(file, 'utf8')))
    expect({ named, wrong }).toEqual({ named: [], wrong: [] })
  })
})
