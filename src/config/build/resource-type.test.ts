import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { loadText } from '#testing/modules/check-text.ts'

const spec = {
  name: 'Device',
  endpoint: '/Devices',
  schema: 'urn:example:Device',
  attributes: [{ name: 'serial', required: true, uniqueness: 'server' }],
  nameAttribute: 'serial',
  target: 'devices',
  workflow: 'write',
}

const others = `
---
apiVersion: gatehouse.dev/v1
kind: Target
metadata: { name: devices }
spec: { className: targets.Database }
---
apiVersion: gatehouse.dev/v1
kind: Workflow
metadata: { name: write }
spec: { tasks: [{ taskType: provision, target: devices, sync: true }] }
`

/** The errors about the type. */
function errorsOf(more: object): string[] {
  const object = { apiVersion: 'gatehouse.dev/v1', kind: 'ResourceType', metadata: { name: 'device' } }
  const text = JSON.stringify({ ...object, spec: { ...spec, ...more } }) + others
  const { issues } = loadText(text, catalog)
  return issues.filter(({ level }) => level === 'error').map(({ message }) => message)
}

const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

test('a type has no errors of its own, and is a part of what is served', () => {
  expect(errorsOf({})).toEqual([])
})

test.each<[string, object]>([
  ['attributes', { attributes: many(201, (i) => ({ name: `a${i}` })) }],
  [
    'sub-attributes',
    { attributes: [{ name: 'a', type: 'complex', subAttributes: many(51, (i) => ({ name: `s${i}` })) }] },
  ],
  ['extensions', { extensions: many(51, (i) => ({ schema: `urn:x:${i}`, attributes: [{ name: 'a' }] })) }],
  ['canonical values', { attributes: [{ name: 'a', canonicalValues: many(201, String) }] }],
  ['characters', { description: 'x'.repeat(1001) }],
  ['characters of a name', { name: 'x'.repeat(65) }],
  ['characters of an endpoint', { endpoint: `/${'x'.repeat(64)}` }],
])('too many %s are refused', (_, more) => {
  expect(errorsOf(more).length).toBeGreaterThan(0)
})

test.each(
  [
    ['/Users', '/users', '/Groups', '/ME', '/Bulk', '/ServiceProviderConfig', '/ResourceTypes', '/Schemas'],
    ['/', 'Devices', '/.search', '/a/b', '/..', '/%55sers', '/Users/', '/Users?x', '/__proto__', '/Ｕsers'],
  ].flat(),
)('the endpoint %j is refused', (endpoint) => {
  expect(errorsOf({ endpoint })).toHaveLength(1)
})

test.each([
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'a.b',
  'a:b',
  'a[b',
  'é',
  'id',
  'Schemas',
  'userid',
])('no attribute has the name %j', (name) => {
  const { attributes } = spec
  expect(errorsOf({ attributes: [...attributes, { name }] })).toHaveLength(1)
})
