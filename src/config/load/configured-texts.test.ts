import { expect, test } from 'vitest'
import { ConfigDocument } from '#config/context/config-document.ts'
import { readYaml } from '#config/context/locate.ts'
import { Issues } from '#kernel/issues.ts'
import { readConfiguredTexts } from './configured-texts.ts'

function read(...yaml: readonly string[]) {
  const issues = new Issues()
  const objects = yaml.map((text, i) => {
    const [document] = readYaml(text).documents
    if (document === undefined) throw new Error('no document')
    const value = document.toValue({ text: (one) => one, report: () => {} })
    return { value, document: new ConfigDocument(`${i}.yaml`, document) }
  })
  const texts = readConfiguredTexts(objects, issues)
  return { texts, issues: issues.list.map(({ level, message }) => `${level} ${message}`) }
}

const workflow = (annotation: string, spec = '{ label: Access to the vault, tasks: "label: Approve it" }') =>
  `metadata:\n  name: x\n  annotations:\n${annotation.replace(/^/gm, '    ')}\nspec: ${spec}\n`

test('annotations translate texts of their object', () => {
  const { texts, issues } = read(
    workflow('texts.gatehouse.dev/de: |\n  Access to the vault: Zugang zum Tresor\n  Approve it: Genehmigen\nother: x'),
    workflow('texts.gatehouse.dev/fr: "{ Access to the vault: Accès au coffre }"'),
    'metadata: { name: y }\nspec: { label: Access to the vault }',
  )
  expect(issues).toEqual([])
  expect([...texts.keys()]).toEqual(['de', 'fr'])
  expect(texts.get('de')?.get('Approve it')).toBe('Genehmigen')
  expect(texts.get('fr')?.get('Access to the vault')).toBe('Accès au coffre')
})

test.each([
  ['texts.gatehouse.dev/xx: "a: b"', 'error unknown language "xx"; use one of en, de, es, fr, ja'],
  ['texts.gatehouse.dev/de: "- a"', 'error expected a YAML map'],
  ['texts.gatehouse.dev/de: "a: [b]"', 'error expected a YAML map'],
  ['texts.gatehouse.dev/de: "a: {"', 'error expected a YAML map'],
  ['texts.gatehouse.dev/de: "Acess to the vault: x"', 'warning "Acess to the vault" is translated, but is not a text'],
])('%s is reported', (annotation, message) => {
  const { issues } = read(workflow(annotation))
  expect(issues).toEqual([expect.stringContaining(message)])
})

test('one text has one translation', () => {
  const german = (text: string) => workflow(`texts.gatehouse.dev/de: "Access to the vault: ${text}"`)
  expect(read(german('Tresor'), german('Tresor')).issues).toEqual([])
  expect(read(german('Tresor'), german('Safe')).issues).toEqual([
    expect.stringContaining('error "Access to the vault" has another translation in 0.yaml:4:'),
  ])
})

test('names of built-in members are not texts', () => {
  const { texts, issues } = read(workflow('texts.gatehouse.dev/de: "constructor: Bau"', '{ label: constructor }'))
  expect(issues).toEqual([expect.stringContaining('error expected a YAML map')])
  expect(texts.get('de')?.get('toString')).toBeUndefined()
})
