import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

const textsOf = (file: string): Readonly<Record<string, string>> => JSON.parse(readFileSync(file, 'utf8'))

/** Some languages have one form for every number. */
const isOptional = (key: string): boolean => key.endsWith('.one')

const placeholders = (text: string): readonly string[] => [...new Set(text.match(/\{\w+\}/g))].sort()

const files = globSync(['portal/src/i18n/**/*.json', 'src/sdk/page/page-texts/*.json'])

test('every language has every text, with the same placeholders', () => {
  expect(files.length).toBeGreaterThanOrEqual(25)
  const problems = files.flatMap((file) => {
    const [english, own] = [textsOf(join(dirname(file), 'en.json')), textsOf(file)]
    const missing = Object.keys(english).filter((key) => own[key] === undefined && !isOptional(key))
    const other = Object.entries(own).filter(
      ([key, text]) => placeholders(text).join() !== placeholders(english[key] ?? '').join() && !isOptional(key),
    )
    const unknown = Object.keys(own).filter((key) => english[key] === undefined)
    return [
      ...missing.map((key) => `${file} lacks "${key}"`),
      ...other.map(([key]) => `${file}: "${key}" has other placeholders`),
      ...unknown.map((key) => `${file}: "${key}" is not in en.json`),
    ]
  })
  expect(problems).toEqual([])
})
