import { globSync, readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { catalog } from '#catalog/catalog.ts'
import { kinds } from '#config/build/kinds.ts'
import { checkText } from '#testing/modules/check-text.ts'
import { schemaFile, schemaText } from '../deploy/write-schema.ts'

const validate = new Ajv({ strict: false, allErrors: true }).compile(JSON.parse(schemaText()))

const documentsOf = (yaml: string): unknown[] =>
  parseAllDocuments(yaml, { uniqueKeys: false }).flatMap((document) => {
    if (document.errors.length > 0 || document.contents === null) return []
    try {
      return [document.toJS()]
    } catch {
      // A reference to nothing, which an editor reports as it reads the text.
      return []
    }
  })

/** What is wrong with the documents, without the consequences of it. */
const problemsOf = (yaml: string): string[] =>
  documentsOf(yaml).flatMap((document) => {
    if (validate(document)) return []
    return (validate.errors ?? []).map(({ instancePath, message, params }) =>
      [instancePath, message, JSON.stringify(params)].join(' '),
    )
  })

test('npm run schema wrote the file', () => {
  expect(readFileSync(schemaFile, 'utf8')).toBe(schemaText())
})

describe('an editor finds no problem where check finds none', () => {
  const files = globSync('examples/**/*.yaml').filter((file) => /^kind:/m.test(readFileSync(file, 'utf8')))
  test('there are files', () => expect(files.length).toBeGreaterThan(30))
  test.each(files)('%s', (file) => {
    expect(problemsOf(readFileSync(file, 'utf8'))).toEqual([])
  })
})

test('what an editor refuses, check refuses as well', () => {
  const environment = { HOST_FROM_ENVIRONMENT: 'env.example.com' }
  const files = globSync('test/config-errors/*.txt').map((file) => {
    const [text = ''] = readFileSync(file, 'utf8').split('---8<---\n')
    const errors = checkText(text, catalog, { environment }).filter((line) => !line.includes(': warning: '))
    return { file, errors: errors.length, problems: text.split(/^### .*\n/m).flatMap(problemsOf) }
  })
  const refused = files.filter(({ problems }) => problems.length > 0)
  expect(refused.length).toBeGreaterThan(10)
  expect(refused.filter(({ errors }) => errors === 0)).toEqual([])
})

const document = (kind: string, spec: object): object => ({
  apiVersion: 'gatehouse.dev/v1',
  kind,
  metadata: { name: 'a' },
  spec,
})

test.each([
  ['an unknown kind', document('Targets', {})],
  ['an unknown field', document('Target', { className: 'targets.Memory', parms: {} })],
  ['an unknown class', document('Target', { className: 'targets.Memroy' })],
  ['an unknown parameter', document('Target', { className: 'targets.Webhook', params: { adress: 'https://a' } })],
  [
    'an unknown parameter in a list',
    document('Target', { className: 'targets.Webhook', params: [{ name: 'adress', value: 'https://a' }] }),
  ],
  ['an unknown task type', document('Workflow', { tasks: [{ taskType: 'provison' }] })],
  [
    'an unknown field of a task',
    document('Workflow', { tasks: [{ taskType: 'provision', target: 'a', sync: true, syncc: true }] }),
  ],
  [
    'an unknown field of a task below another',
    document('Workflow', {
      tasks: [
        {
          taskType: 'ifAttrExists',
          name: 'a',
          onSuccess: [{ taskType: 'provision', target: 'a', sync: true, syncc: true }],
        },
      ],
    }),
  ],
  ['an unknown version', { ...document('Org', { uuid: '1' }), apiVersion: 'gatehouse.dev/v9' }],
  ['an object without a spec', { apiVersion: 'gatehouse.dev/v1', kind: 'Org', metadata: { name: 'a' } }],
])('an editor refuses %s', (_, value) => {
  expect(validate(value)).toBe(false)
})

test('documents of values and of policy tests are no objects', () => {
  expect(validate({ HOST: 'gatehouse.example.com' })).toBe(true)
  expect(validate({ tests: [] })).toBe(true)
})

test('every field of every kind has a description', () => {
  const { definitions } = JSON.parse(schemaText())
  const missing = kinds.flatMap(({ kind }) => undescribed(definitions[kind].properties.spec, kind))
  expect(missing).toEqual([])
})

interface Field {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Field>>
  readonly items?: Field
}

/** Fields without a description, of their own or of their parts. */
function undescribed({ description, properties, items }: Field, path: string): string[] {
  if (description !== undefined) return []
  if (properties !== undefined) {
    return Object.entries(properties).flatMap(([name, field]) => undescribed(field, `${path}.${name}`))
  }
  return items === undefined ? [path] : undescribed(items, `${path}[]`)
}
