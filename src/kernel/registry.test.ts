import { expect, test } from 'vitest'
import { createRegistry } from './registry.ts'

const gateway = { className: 'filters.ScimGateway', aliases: ['com.example.proxy.scim.Scim'] }
const json = { className: 'filters.JsonPathMapping', aliases: ['com.example.mappers.JsonPathMapping'] }
const [one, other] = ['a', 'b'].map((part) => ({ className: `${part}.Twin`, aliases: [] }))
const registry = createRegistry('filter', [gateway, json, ...(one && other ? [one, other] : [])])

test('a definition is found by its names, and by their last segment', () => {
  for (const name of ['filters.ScimGateway', 'com.example.proxy.scim.Scim', 'ScimGateway', 'Scim']) {
    expect([name, registry.find(name)]).toEqual([name, gateway])
  }
  expect(registry.find('JsonPathMapping')).toBe(json)
})

test('a segment of two definitions, and a name of another package, find none', () => {
  expect(registry.find('Twin')).toBeUndefined()
  expect(registry.find('a.Twin')).toBe(one)
  expect(registry.find('org.other.ScimGateway')).toBeUndefined()
})

test.each([
  ['filters.ScimGatway', 'filters.ScimGateway'],
  ['ScimGatway', 'filters.ScimGateway'],
  ['org.other.ScimGateway', 'filters.ScimGateway'],
  ['JsonPathMapper', 'filters.JsonPathMapping'],
  ['com.example.mappers.JsonPathMapper', 'com.example.mappers.JsonPathMapping'],
])('"%s" is unknown, and close to "%s"', (name, near) => {
  expect(registry.unknown(name)).toBe(`no filter named "${name}" (did you mean "${near}"?)`)
})

test('a package that is alike is not enough for a suggestion', () => {
  expect(registry.unknown('com.example.mappers.CreateK8sObject')).not.toContain('did you mean')
})

test('a name that is close to no other gets the names of all', () => {
  expect(registry.unknown('com.example.Unheard')).toBe(
    'no filter named "com.example.Unheard"; use one of a.Twin, b.Twin, filters.JsonPathMapping, filters.ScimGateway',
  )
})
