import { existsSync, readFileSync, statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { languages } from '#sdk/page/languages.ts'

const dist = 'portal/dist'
const budget = 200_000

interface Chunk {
  readonly file: string
  readonly imports?: readonly string[]
}

/** The chunks that a browser loads before the page is usable, with all their imports. */
function closure(manifest: Readonly<Record<string, Chunk>>, entries: readonly string[]): ReadonlySet<string> {
  const files = new Set<string>()
  const visit = (key: string): void => {
    const chunk = manifest[key]
    if (chunk === undefined) throw new Error(`there is no chunk "${key}"`)
    if (files.has(chunk.file)) return
    files.add(chunk.file)
    for (const imported of chunk.imports ?? []) visit(imported)
  }
  for (const entry of entries) visit(entry)
  return files
}

const bytes = (files: Iterable<string>): number =>
  [...files].filter((file) => file.endsWith('.js')).reduce((sum, file) => sum + statSync(`${dist}/${file}.br`).size, 0)

const sections: Readonly<Record<string, string>> = { 'security/security-page': 'settings', 'apis/api-page': 'apis' }

const textsOf = (page: string, language: string): string[] =>
  ['', ...(sections[page] === undefined ? [] : [`${sections[page]}/`])].map((at) => `src/i18n/${at}${language}.json`)

test('the portal was built, as npm ci does', () => expect(existsSync(`${dist}/manifest.json`)).toBe(true))

test.each([
  'home/home-page',
  'request-access/request-page',
  'requests/requests-page',
  'approvals/approvals-page',
  'token/token-page',
  'register/public-registration',
  'reports/report-page',
  'dashboard/dashboard-page',
  'security/security-page',
  'apis/api-page',
])('the first load of %s is at most 200 KB of compressed JavaScript, in any language', (page) => {
  const manifest = JSON.parse(readFileSync(`${dist}/manifest.json`, 'utf8'))
  const sizes = Object.keys(languages).map((language) =>
    bytes(closure(manifest, ['index.html', ...textsOf(page, language), `src/pages/${page}.tsx`])),
  )
  expect(Math.min(...sizes)).toBeGreaterThan(50_000)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(budget)
})

test('pages are loaded on demand', () => {
  const manifest = JSON.parse(readFileSync(`${dist}/manifest.json`, 'utf8'))
  const first = closure(manifest, ['index.html'])
  const pages = Object.keys(manifest).filter((key) => key.startsWith('src/pages/'))
  expect(pages.length).toBeGreaterThan(8)
  expect(pages.filter((key) => first.has(manifest[key].file))).toEqual([])
})
