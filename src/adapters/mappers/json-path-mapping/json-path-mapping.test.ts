import { describe, expect, it } from 'vitest'
import type { MappingSource } from '#identity/mapping/mapped-value.ts'
import { GatewayError } from '#kernel/errors.ts'
import { Issues } from '#kernel/issues.ts'
import type { JsonValue } from '#kernel/json.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParseContext, issueTexts } from '#testing/modules/fake-parse.ts'
import jsonPathMapping from './json-path-mapping.ts'

const resource: Record<string, JsonValue> = {
  name: { givenName: 'Ann', familyName: 'Lee', middleName: null, nested: { a: [1, 2] } },
  emails: [{ type: 'work', value: 'a@work', primary: true }, { type: 'home', value: 'a@home' }, 'not an object'],
}
const scim: MappingSource = { userID: 'a', groups: [], values: () => [], json: (name) => resource[name] }
const textsOnly: MappingSource = {
  userID: 'a',
  groups: [],
  values: (name) => [JSON.stringify(resource[name] ?? null), 'not JSON', '{"value":"second"}'],
}

const prepare = (...parameters: string[]) => {
  const issues = new Issues()
  return { instance: jsonPathMapping.prepare(parameters, ['source'], issues, fakeParseContext()), issues }
}

async function find(attribute: string, path: string, source = scim) {
  const { instance, issues } = prepare(...`${attribute},${path}`.split(','))
  expect(issueTexts(issues.list)).toEqual([])
  const mapper = await instance?.create(fakeModuleHost())
  return mapper?.map(source, 'x')
}

describe('mappers.JsonPathMapping', () => {
  it.each([
    ['name', '$.givenName', ['Ann']],
    ['name', 'givenName', ['Ann']],
    ['name', '$.missing', []],
    ['name', '$.middleName', []],
    ['name', '$.constructor', []],
    ['name', '$.nested', ['{"a":[1,2]}']],
    ['name', '$.nested.a[*]', ['1', '2']],
    ['name', '$["givenName","familyName"]', ['Ann', 'Lee']],
    ['emails', '$[*].value', ['a@work', 'a@home']],
    ['emails', '$[*].primary', ['true']],
    ['emails', '[0].value', ['a@work']],
    ['emails', "$[?(@.type=='work')].value", ['a@work']],
    ['emails', '$[?@.type != "work" && @.value].value', ['a@home']],
    ['emails', '$[?match(@.type, "h.me")].value', ['a@home']],
    ['emails', '$[?search(@.value, "@h")].value', ['a@home']],
    ['emails', '$[?match(@.type, "(")].value', []],
    ['absent', '$.x', []],
  ])('%s at %s gives %j', async (attribute, path, expected) => {
    expect(await find(attribute, path)).toEqual(expected)
  })

  it('reads values that are JSON text if the source has only texts', async () => {
    expect(await find('emails', '$[*].value', textsOnly)).toEqual(['a@work', 'a@home'])
    expect(await find('name', '$.value', textsOnly)).toEqual(['second'])
  })

  it('does not backtrack over a hostile text', async () => {
    const source: MappingSource = { ...scim, json: () => [{ v: `${'a'.repeat(50_000)}!` }] }
    const start = performance.now()
    expect(await find('x', '$[?match(@.v, "(a+)+")].v', source)).toEqual([])
    expect(performance.now() - start).toBeLessThan(8_000)
  })

  it('rejects a document that is nested too deeply instead of exhausting the stack', async () => {
    let deep: JsonValue = 1
    for (let i = 0; i < 10_000; i++) deep = [deep]
    const attempt = async () => find('x', '$..a', { ...scim, json: () => deep })
    await expect(attempt()).rejects.toThrow(GatewayError)
  })

  it.each([
    [['emails', '$[?'], /^error source: the JSON path "\$\[\?" does not parse: /],
    [['emails', '$[(@.length-1)]'], /does not parse/],
    [['emails'], /takes "attribute,path"; missing: path$/],
    [[], /missing: attribute, path$/],
    [['', '$.x'], /missing: attribute$/],
  ])('reports %j', (parameters, message) => {
    const { instance, issues } = prepare(...parameters)
    expect(instance).toBeUndefined()
    expect(issueTexts(issues.list)[0]).toMatch(message)
  })

  it('declares the attributes it reads', () => {
    expect(prepare('emails', '$[*].value').instance?.reads).toEqual(['emails'])
  })

  it.each([
    ['$.givenName', ['givenName']],
    ['givenName', ['givenName']],
    ['$[*].value', ['value']],
    ['[0].value', ['value']],
    ["$[?(@.type=='work')].value", ['value', 'type']],
    ['$[?@.type != "work" && @.primary].value', ['value', 'type', 'primary']],
    ['$[?@ == 1].value', undefined],
    ['$.nested.a[*]', undefined],
    ['$..value', undefined],
    ['$[*]', undefined],
    ['$["givenName","familyName"]', undefined],
  ])('declares the parts that %s reads', (path, parts) => {
    expect(prepare('name', path).instance?.parts).toEqual(parts)
  })
})
