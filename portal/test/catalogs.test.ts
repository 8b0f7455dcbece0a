import { globSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { languages } from '#sdk/page/languages.ts'

/** The portal has its texts, and so have the pages without scripts. */
const sets = [
  { folder: 'portal/src/i18n', users: 'portal/src/**/*.{ts,tsx}' },
  { folder: 'portal/src/i18n/console', users: 'portal/src/**/*.{ts,tsx}' },
  { folder: 'portal/src/i18n/settings', users: 'portal/src/**/*.{ts,tsx}' },
  { folder: 'portal/src/i18n/apis', users: 'portal/src/**/*.{ts,tsx}' },
  { folder: 'src/sdk/page/page-texts', users: 'src/**/*.ts' },
] as const

const read = (language: string, folder: string = sets[0].folder): Record<string, string> =>
  JSON.parse(readFileSync(`${folder}/${language}.json`, 'utf8'))
const others = Object.keys(languages).filter((language) => language !== 'en')
const placeholders = (text = ''): string[] => (text.match(/\{\w+\}/g) ?? []).sort()

describe.each(sets)('$folder', ({ folder, users }) => {
  const english = read('en', folder)
  const sources = globSync(users)
    .filter((file) => !file.endsWith('.test.ts'))
    .map((file) => readFileSync(file, 'utf8'))
  const literals = new Set(
    sources.flatMap((source) => Array.from(source.matchAll(/['"]([\w.]+)['"]/g), (match) => match[1])),
  )

  test('there is a catalog for every language, and a language for every catalog', () => {
    const files = globSync(`${folder}/*.json`).map((file) => file.split('/').at(-1)?.replace('.json', ''))
    expect(files.sort()).toEqual(Object.keys(languages).sort())
  })

  test.each(others)('%s has exactly the messages of English, with the same placeholders', (language) => {
    const catalog = read(language, folder)
    expect(Object.keys(catalog).sort()).toEqual(Object.keys(english).sort())
    const differing = Object.keys(english).filter(
      (key) => placeholders(catalog[key]).join() !== placeholders(english[key]).join(),
    )
    expect(differing).toEqual([])
  })

  test.each(Object.keys(languages))('%s has no empty message, and its keys are in order', (language) => {
    const catalog = read(language, folder)
    expect(Object.entries(catalog).filter(([, text]) => text.trim() === '')).toEqual([])
    expect(Object.keys(catalog)).toEqual(Object.keys(catalog).sort())
  })

  test('every language is translated', () => {
    const long = Object.keys(english).filter((key) => (english[key] ?? '').split(' ').length > 3)
    const same = others.flatMap((language) => {
      const catalog = read(language, folder)
      return long.filter((key) => catalog[key] === english[key]).map((key) => `${language} ${key}`)
    })
    expect(same).toEqual([])
  })

  test('every message is used', () => {
    const unused = Object.keys(english).filter(
      (key) => !literals.has(key) && !literals.has(key.replace(/\.(?:one|other)$/, '')),
    )
    expect(unused).toEqual([])
  })

  test('a message that depends on a number has both forms', () => {
    const keys = Object.keys(english)
    const lonely = keys.filter((key) => key.endsWith('.one') && !keys.includes(key.replace(/one$/, 'other')))
    expect(lonely).toEqual([])
  })
})

/** The visible text of a button, and its accessible name. */
const named = [
  ['request.add', 'request.addNamed'],
  ['copy.copy', 'copy.what'],
  ['copy.done', 'copy.doneWhat'],
  ['token.download', 'token.downloadWhat'],
  ['security.end', 'security.endWhich'],
  ['security.remove', 'security.removeWhich'],
  ['security.rename', 'security.renameWhich'],
] as const

test.each(Object.keys(languages))('%s: voice control finds a button by its visible text', (language) => {
  const catalog = read(language)
  const lower = (key: string): string => (catalog[key] ?? '').toLocaleLowerCase(language)
  expect(named.filter(([shown, name]) => !lower(name).includes(lower(shown)))).toEqual([])
})

test.each(Object.keys(languages))('%s names the page of requests by its title', (language) => {
  const catalog = read(language)
  expect(catalog['cart.toRequests']).toContain(catalog['page.requests'])
})

test('German has one word for a request of a user; an HTTP request is another thing', () => {
  const named = [sets[0].folder, 'portal/src/i18n/settings'].flatMap((folder) => Object.entries(read('de', folder)))
  const other = named.filter(([key, text]) => /anfrag|angefragt/i.test(text) && key !== 'dashboard.requestId')
  expect(other).toEqual([])
})
