import { expect, test } from 'vitest'
import { openApi, swagger } from './api-description.ts'

/** Every object of a document, with where it stands. */
function objectsIn(value: unknown, path = ''): { path: string; object: Record<string, unknown> }[] {
  if (typeof value !== 'object' || value === null) return []
  const object = value as Record<string, unknown>
  return [{ path, object }, ...Object.entries(object).flatMap(([key, inner]) => objectsIn(inner, `${path}/${key}`))]
}

test('Swagger is 2.0, of version 1.0.0, over https and http', () => {
  expect(swagger('/portal')).toMatchObject({
    swagger: '2.0',
    info: { version: '1.0.0' },
    basePath: '/portal',
    schemes: ['https', 'http'],
  })
  expect(swagger('')['basePath']).toBe('/')
})

test('OpenAPI is 3.1', () => {
  expect(openApi('https://x/portal')).toMatchObject({ openapi: '3.1.0', servers: [{ url: 'https://x/portal' }] })
})

test.each([
  ['swagger', swagger('')],
  ['openapi', openApi('https://x')],
])('%s describes the same operations, and every reference leads somewhere', (_, document) => {
  const paths = document['paths'] as Record<string, object>
  expect(Object.entries(paths).map(([path, one]) => `${Object.keys(one).join()} ${path}`)).toEqual([
    'get /register/config',
    'get /register/values',
    'post /register/submit',
  ])
  const objects = objectsIn(document)
  const places = new Set(objects.map(({ path }) => `#${path}`))
  const references = objects.flatMap(({ object }) => (typeof object['$ref'] === 'string' ? [object['$ref']] : []))
  expect(references.length).toBeGreaterThan(5)
  expect(references.filter((reference) => !places.has(reference))).toEqual([])
})

test('Swagger uses no word that 2.0 does not have', () => {
  const unknown = ['$schema', 'const', 'anyOf', 'oneOf', 'propertyNames', '$defs', 'prefixItems', 'nullable']
  const definitions = objectsIn(swagger('')['definitions'])
  expect(definitions.filter(({ object }) => unknown.some((word) => Object.hasOwn(object, word)))).toEqual([])
  for (const { object } of definitions) expect(Array.isArray(object['type'])).toBe(false)
})
