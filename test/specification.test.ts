import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Proof, sections, specificationPage, statements } from './specification.ts'
import { differencesTable, migrationPage } from './specification-differences.ts'

const sources = new Map<string, string>()
function sourceOf(file: string): string {
  const known = sources.get(file) ?? (existsSync(file) ? readFileSync(file, 'utf8') : '')
  sources.set(file, known)
  return known
}

/** The call of a test with this title in its source, or undefined: `test(`, `it(`, or the end of a `test.each`. */
function callOf(source: string, title: string): string | undefined {
  for (const quote of ["'", '"', '`']) {
    const text = title.replaceAll('\\', '\\\\').replaceAll(quote, `\\${quote}`)
    const at = source.indexOf(`${quote}${text}${quote}`)
    if (at < 0) continue
    const call = /(?:\b(?:test|it)(?:\.\w+)*(?:<[^>]*>)?\(|\)\()\s*$/.exec(source.slice(0, at))?.[0]
    if (call !== undefined) return call
  }
  return undefined
}

function problemOf({ file, title }: Proof): string | undefined {
  const source = sourceOf(file)
  if (source === '') return `${file}: there is no such file`
  if (title === undefined) {
    return /^test\/config-errors\/[\w-]+\.txt$/.test(file) ? undefined : `${file}: only golden files have no title`
  }
  const call = callOf(source, title)
  if (call === undefined) return `${file}: there is no test "${title}"`
  if (/\.(?:skip|todo|fails|only)\b/.test(call)) return `${file}: the test "${title}" is not run`
  return /\bdescribe\.(?:skip|todo)\(/.test(source) ? `${file}: has tests that are not run` : undefined
}

test('every statement has a test that exists and is not skipped', () => {
  expect(statements.flatMap(({ proof }) => problemOf(proof) ?? [])).toEqual([])
})

test('a missing, misspelled or skipped test is found', () => {
  const file = 'test/specification.test.ts'
  expect(problemOf({ file, title: 'every statement has a test that exists and is not skipped' })).toBeUndefined()
  expect(problemOf({ file, title: 'every statement' })).toContain('no test')
  expect(problemOf({ file: 'test/gone.test.ts', title: 'x' })).toContain('no such file')
  expect(callOf("test.skip('x', () => {})", 'x')).toBe('test.skip(')
  expect(callOf("test.each([1])('x %s', () => {})", 'x %s')).toBe(')(')
  expect(callOf("expect('x')", 'x')).toBeUndefined()
})

test('every section with statements is present, and no statement is repeated', () => {
  expect([...new Set(statements.map(({ section }) => section))]).toEqual(sections.map(([section]) => section))
  const all = statements.map(({ section, statement }) => `${section} ${statement}`)
  expect(all.filter((one, i) => all.indexOf(one) !== i)).toEqual([])
})

test('docs/specification.md and the list of the migration page are what npm run specification writes', () => {
  expect(readFileSync('docs/specification.md', 'utf8')).toBe(specificationPage())
  const page = readFileSync('docs/migration-from-openunison.md', 'utf8')
  expect(page).toBe(migrationPage())
  expect(page).toContain(differencesTable())
})
