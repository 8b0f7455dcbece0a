import { describe, expect, it } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { JsonDocument, userSource } from '#identity/mapping/mapped-value.ts'
import { Issues } from '#kernel/issues.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParseContext, issueTexts } from '#testing/modules/fake-parse.ts'
import compositeNoReturn from './composite-no-return.ts'

const encode = (text: string) => Buffer.from(text).toString('base64')
const emails = encode('[{"type":"work","primary":true,"value":"${mail}"}]')

const prepare = (...parameters: string[]) => {
  const issues = new Issues()
  const instance = compositeNoReturn.prepare(parameters, ['source'], issues, fakeParseContext())
  return { instance, messages: issueTexts(issues.list) }
}

async function map(template: string, mail: string[]) {
  const mapper = await prepare(template).instance?.create(fakeModuleHost())
  return mapper?.map(userSource({ userID: 'a', groups: [], attributes: Attributes.from({ mail }) }), 'emails')
}

describe('mappers.CompositeNoReturn', () => {
  it('expands its template', async () => {
    expect(await map(emails, ['a"b@x'])).toEqual(new JsonDocument([{ type: 'work', primary: true, value: 'a"b@x' }]))
    expect(await map(encode('<${mail}>'), ['a@x'])).toEqual(['<a@x>'])
  })

  it('returns nothing if no attribute has a value', async () => {
    expect(await map(emails, [])).toEqual([])
  })

  it('declares the attributes it reads', () => {
    expect(prepare(emails).instance?.reads).toEqual(['mail'])
    expect(prepare(emails, '').instance?.reads).toEqual(['mail'])
  })

  it.each([
    [[], /missing: template$/],
    [['[{"a":1}]'], /is not base64$/],
    [[emails.slice(0, -1)], /is not base64$/],
    [[Buffer.from([0xff, 0xfe]).toString('base64')], /is not UTF-8 text$/],
    [[encode('{"a": ${mail}')], /JSON template: expected "," or "}" at character 14$/],
    [[encode('{"a": 1}')], /no placeholder/],
    [[emails, 'x'], /takes "template"; given: 2$/],
  ])('reports %j', (parameters, message) => {
    const { instance, messages } = prepare(...parameters)
    expect(instance).toBeUndefined()
    expect(messages[0]).toMatch(message)
  })
})
