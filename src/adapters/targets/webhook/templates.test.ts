import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '#kernel/json.ts'
import { parseBodyTemplate, parseHeaderTemplate, parseRequestTemplate } from './templates.ts'

const one = (values: Readonly<Record<string, string>>) => (name: string) => values[name]
const many = (values: Readonly<Record<string, readonly string[]>>) => (name: string) => values[name] ?? []

describe('a request', () => {
  test('values stay in their segment or query value', () => {
    const { method, places, render } = parseRequestTemplate('get /a/{x}-{y}/b?q={x}&fixed=1&z={z}')
    expect({ method, places }).toEqual({ method: 'GET', places: ['x', 'y', 'z'] })
    expect(render(one({ x: '../a?b#c', y: 'é', z: '&q=1' }))).toBe(
      '/a/..%2Fa%3Fb%23c-%C3%A9/b?q=..%2Fa%3Fb%23c&fixed=1&z=%26q%3D1',
    )
    expect(render(one({ x: '.', y: '.' }))).toBe('/a/.-./b?q=.&fixed=1')
  })

  test('any value keeps the parts of the URL, and comes back unchanged', () => {
    const { render } = parseRequestTemplate('GET /users/{x}/y?q={x}')
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (x) => {
        fc.pre(x !== '.' && x !== '..' && x.isWellFormed())
        const url = new URL(render(one({ x })), 'http://h')
        const segments = url.pathname.split('/')
        expect(segments).toHaveLength(4)
        expect(decodeURIComponent(segments[2] ?? '')).toBe(x)
        expect([...url.searchParams]).toEqual([['q', x]])
      }),
    )
  })

  test.each([
    ['/users', /a method and a path/],
    ['GET users', /a method and a path/],
    ['GET https://evil.example/users', /a method and a path/],
    ['GET /users#x', /a method and a path/],
    ['FETCH /users', /not one of the methods/],
    ['GET /users/{login', /"\{login" is not a place/],
    ['GET /users/{a b}', /a method and a path/],
    ['GET /users/{}', /is not a place/],
    ['GET /users/{mail*}', /neither "\*" nor a type/],
    ['GET /users?x={n:number}', /neither "\*" nor a type/],
    ['GET /a/../b', /must not hold/],
    ['GET /a/%2e%2E/b', /must not hold/],
    ['GET /a"b', /percent-encode/],
    ['GET /a?=1', /not a valid name of a query value/],
    ['GET /a?{x}=1', /not a valid name of a query value/],
  ])('%s is rejected', (text, reason) => {
    expect(() => parseRequestTemplate(text)).toThrow(reason)
  })
})

const hostile = fc.string({ unit: 'binary', maxLength: 12 })

describe('a body', () => {
  const user = parseBodyTemplate(`{
    "login": "{userID}", "kind": "person", "label": "{first} {last}", "age": "{age:number}", "on": "{active:boolean}",
    "mails": "{mail*}", "flags": ["x", "{flag*:boolean}"], "brace": "{{{first}}}",
    "name": {"first": "{first}", "source": "hr"},
    "addresses": [{"kind": "work", "value": "{mail*}", "of": "{userID}"}, {"kind": "home", "value": "{home}"}]
  }`)

  test('may have colons in the names of its places', () => {
    const values = many({ 'urn:x:User:unit': ['U'], 'urn:x:on': ['true'] })
    const body = parseBodyTemplate('{"unit": "{urn:x:User:unit}", "on": "{urn:x:on:boolean}"}')
    expect(body.render({ values })).toEqual({ unit: 'U', on: true })
  })

  test('has values in its leaves', () => {
    const values = many({
      userID: ['ada'],
      first: ['A"}'],
      last: ['L'],
      age: ['-1.5'],
      active: ['TRUE'],
      mail: ['a', 'b'],
      flag: ['false'],
      home: ['h'],
    })
    expect(user.render({ values })).toEqual({
      login: 'ada',
      kind: 'person',
      label: 'A"} L',
      age: -1.5,
      on: true,
      mails: ['a', 'b'],
      flags: ['x', false],
      brace: '{A"}}',
      name: { first: 'A"}', source: 'hr' },
      addresses: [
        { kind: 'work', value: 'a', of: 'ada' },
        { kind: 'work', value: 'b', of: 'ada' },
        { kind: 'home', value: 'h' },
      ],
    })
  })

  test('omits parts without a value', () => {
    expect(user.render({ values: many({ userID: ['ada'], last: ['L'] }) })).toEqual({
      login: 'ada',
      kind: 'person',
      label: ' L',
      mails: [],
      flags: ['x'],
      addresses: [],
    })
  })

  test('of changes has only the changes, and null for a removed value', () => {
    const render = (changed: readonly string[], values: Readonly<Record<string, readonly string[]>>) =>
      user.render({ values: many({ userID: ['ada'], ...values }), changed: (name) => changed.includes(name) })
    expect(render(['age'], {})).toEqual({ kind: 'person', age: null })
    expect(render(['first'], { last: ['L'] })).toEqual({
      kind: 'person',
      label: ' L',
      brace: null,
      name: { first: null, source: 'hr' },
    })
    expect(render(['mail'], { mail: ['a'], home: ['h'] })).toEqual({
      kind: 'person',
      mails: ['a'],
      addresses: [
        { kind: 'work', value: 'a', of: 'ada' },
        { kind: 'home', value: 'h' },
      ],
    })
  })

  test('that is a list is a list of changes', () => {
    const patch = parseBodyTemplate('[{"op": "replace", "path": "/a", "value": "{a}"}, {"op": "x", "value": "{b}"}]')
    const values = many({ a: ['1'], b: ['2'] })
    expect(patch.render({ values, changed: (name) => name === 'b' })).toEqual([{ op: 'x', value: '2' }])
  })

  test('no value changes its structure', () => {
    const template = parseBodyTemplate('{"a": "{x}", "b": ["{y*}"], "c": {"d": "<{x}>"}}')
    fc.assert(
      fc.property(hostile, fc.array(hostile, { maxLength: 4 }), (x, y) => {
        const sent = JSON.stringify(template.render({ values: many({ x: [x], y }) }))
        expect(JSON.parse(sent) as JsonValue).toEqual({ a: x, b: y, c: { d: `<${x}>` } })
      }),
    )
  })

  test.each([
    [{ age: ['old'] }, /"age" is not a number/],
    [{ age: ['1e400'] }, /"age" is not a number/],
    [{ active: ['yes'] }, /"active" is neither true nor false/],
    [{ first: ['a', 'b'] }, /"first" has 2 values/],
  ])('rejects %j by name', (values, reason) => {
    expect(() => user.render({ values: many(values) })).toThrow(reason)
  })

  test.each([
    ['{"a": }', /not JSON: expected a JSON value at line 1, column 7/],
    ['{\n  "a": 1\n  "b": 2}', /not JSON: expected "," or "\}" at line 3, column 3/],
    ['{"a": 1, "a": 2}', /the name "a" appears twice at line 1, column 10/],
    ['{"a": ${x}}', /put places in quotes/],
    ['{"a": {x}}', /not JSON/],
    ['{"a": "{x"}', /is not a place/],
    ['{"a": "{x*} and"}', /must be the whole of its text/],
    ['{"a": "is {x:number}"}', /must be the whole of its text/],
    ['{"__proto__": "{x}"}', /"__proto__" is not allowed/],
    ['[{"a": "{x*}", "b": "{y*}"}]', /cannot repeat for both/],
    [`${'['.repeat(40)}"{x}"${']'.repeat(40)}`, /nested deeper|longer/],
    [`"${'x'.repeat(70_000)}"`, /longer than/],
  ])('%s is rejected', (text, reason) => {
    expect(() => parseBodyTemplate(text)).toThrow(reason)
  })
})

describe('a header', () => {
  test('is omitted without its value, and contains no line break', () => {
    const { name, render } = parseHeaderTemplate('If-Match: "{version}"')
    expect([name, render(one({ version: '3' })), render(one({}))]).toEqual(['If-Match', '"3"', undefined])
    expect(() => render(one({ version: '3\r\nX: y' }))).toThrow(/"version" is not allowed in a header/)
  })

  test.each(['no colon', 'Host: x', 'Content-Length: 3', 'X Y: z', 'X: a\nY: b', 'X: {v*}'])(
    '%j is rejected',
    (line) => {
      expect(() => parseHeaderTemplate(line)).toThrow()
    },
  )
})
