import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import { buildConfiguration } from '#config/load/load.ts'
import { type ListedObject, namespaceSources } from './cluster-documents.ts'

const object = (kind: string, name: string, spec: unknown, more: object = {}): ListedObject => ({
  kind,
  apiVersion: 'openunison.tremolo.io/v1',
  content: {
    metadata: { name, uid: 'u', resourceVersion: '7', generation: 3, managedFields: [{}], ...more },
    spec,
    status: { conditions: [] },
  },
})
const map = (data: object): ListedObject => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  content: { metadata: { name: 'values' }, data },
})

const check = (objects: readonly ListedObject[], values: readonly ListedObject[] = []): string[] => {
  const sources = { ...namespaceSources('ns', objects, values), keys: new Map<string, string>() }
  return buildConfiguration(sources, { folder: '.', catalog, environment: {} }).issues.map(formatIssue)
}

test('fields of the API server and of tools in an object are not configuration', () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', note: 'kept' }
  const { files } = namespaceSources('ns', [object('Target', 'a', { className: 'x' }, { annotations })], [])
  const again = object('Target', 'a', { className: 'x' }, { annotations: { note: 'kept' }, resourceVersion: '8' })
  expect(files).toEqual(namespaceSources('ns', [again], []).files)
  expect(files).toEqual([
    {
      name: 'Target/ns/a',
      isObject: true,
      text: '{"apiVersion":"openunison.tremolo.io/v1","kind":"Target","metadata":{"annotations":{"note":"kept"},"name":"a","namespace":"ns"},"spec":{"className":"x"}}',
    },
  ])
})

const azRules = [{ scope: 'filter', constraint: '(uid=*)' }]

test('problems of objects have a path, those of a ConfigMap a line', () => {
  const objects = [
    object('Org', 'top', { label: 'x', azRules }),
    object('Workflow', 'w', { tasks: '- taskType: nothing\n' }),
    object('Workflow', 'text', { tasks: '- a: 1\n  b: [\n' }),
  ]
  expect(check(objects, [map({ 'values.yaml': 'A: 1\nB: [1]\n', 'other.txt': '{' })])).toEqual([
    'ConfigMap/ns/values/values.yaml:2:1: B: expected a value for #[B], found a block; the only block is "sts"',
    'Org/ns/top: spec.uuid: is required',
    expect.stringMatching(/^Workflow\/ns\/text: spec\.tasks: line \d: YAML: /),
    expect.stringMatching(/^Workflow\/ns\/w: spec\.tasks\[0\]\.taskType: /),
  ])
})

test('an object that refers to another names it without a line', () => {
  const org = (name: string) => object('Org', name, { uuid: 'same', label: name })
  for (const line of check([org('a'), org('b')])) expect(line).not.toMatch(/:\d+:\d+/)
})

test('values of the ConfigMap are substituted in objects, and objects in it count', () => {
  const target =
    'apiVersion: openunison.tremolo.io/v1\nkind: Org\nmetadata:\n  name: inside\nspec:\n  uuid: "#[ID]"\n  azRules: [{scope: filter, constraint: (uid=*)}]\n'
  expect(
    check([object('Org', 'a', { uuid: '#[OTHER]', azRules })], [map({ 'v.yaml': 'ID: x\n', 'o.yml': target })]),
  ).toEqual([
    'Org/ns/a: spec.uuid: must not be empty',
    expect.stringMatching(/^Org\/ns\/a: warning: spec\.uuid: #\[OTHER\] is neither/),
  ])
})

test('the keys of token endpoints are requested while objects are read', () => {
  const sts = `sts:\n  endpoints:\n    - {name: aws, audience: a, path: /sts/aws, issuer: {host: i.example.com, keypair: own}, azRules: [{scope: filter, constraint: (saname=a)}]}\n`
  const asked: string[] = []
  const clusterSecrets = (name: string, key: string): undefined => void asked.push(`${name}/${key}`)
  const sources = { ...namespaceSources('ns', [], [map({ 'sts.yaml': sts })]), keys: new Map<string, string>() }
  buildConfiguration(sources, { folder: '.', catalog, environment: {}, clusterSecrets })
  expect(asked).toContain('own/tls.key')
})

test('an empty namespace is reported', () => {
  expect(check([])).toEqual(['.:1:1: warning: there are no objects in the namespace ns: nothing is served'])
})

test('number and size are bounded', () => {
  const many = Array.from({ length: 5 }, (_, i) => object('Org', `o${i}`, { uuid: `u${i}` }))
  const { files, problems } = namespaceSources('ns', many, [], { objects: 3, totalBytes: 1 << 20 })
  expect(files).toHaveLength(3)
  expect(problems).toEqual([
    { name: 'Org/ns/o3', message: expect.stringContaining('more than 3 objects'), whole: true },
  ])
  expect(namespaceSources('ns', many, [], { objects: 10, totalBytes: 200 }).files.length).toBeLessThan(3)
})

test('content that is not an object does no harm', () => {
  const odd: ListedObject = {
    kind: 'Org',
    apiVersion: 'openunison.tremolo.io/v1',
    content: { metadata: 'x', spec: null },
  }
  expect(check([odd], [{ ...map({}), content: { data: [1] } }]).length).toBeGreaterThan(0)
})

test('an endlessly nested object is reported by name, and others are still read', () => {
  const nested = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)
  const { files, problems } = namespaceSources(
    'ns',
    [object('Org', 'deep', nested(9_000)), object('Org', 'ok', {})],
    [],
  )
  expect(files.map(({ name }) => name)).toEqual(['Org/ns/ok'])
  expect(problems).toEqual([{ name: 'Org/ns/deep', message: 'is nested too deeply' }])
  expect(namespaceSources('ns', [object('Org', 'fair', nested(30))], []).problems).toEqual([])
})
