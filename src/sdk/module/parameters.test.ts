import { describe, expect, it } from 'vitest'
import { Issues } from '#kernel/issues.ts'
import { choice, flag, list, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { fakeParams, fakeParseContext, issueTexts } from '#testing/modules/fake-parse.ts'

const table = {
  issuer: text({ about: 'a', required: true }),
  realm: text({ about: 'a' }),
  scope: text({ about: 'a', fallback: 'auth' }),
  audience: list({ about: 'a' }),
  strict: flag({ about: 'a', fallback: true }),
  timeout: wholeNumber({ about: 'a', fallback: 30, min: 1, max: 60 }),
  mode: choice(['read', 'write'], { about: 'a', fallback: 'read' }),
  pattern: parsed('JSON', (value) => JSON.parse(value) as unknown, { about: 'a' }),
  target: text({ about: 'a', reference: 'target' }),
  chains: list({ about: 'a', reference: 'chain', absentReference: 'warning' }),
  'map.<attribute>.source': text({ about: 'a', required: true }),
  'map.<attribute>.type': choice(['user', 'static'], { about: 'a', fallback: 'user' }),
}

function read(values: Record<string, string | string[]>, secrets: readonly string[] = []) {
  const issues = new Issues()
  const references: string[] = []
  const context: ParseContext = {
    ...fakeParseContext(),
    refer: (kind, name, path, absent = 'error') => {
      references.push(`${absent} ${path.join('.')}: ${kind} ${name}`)
    },
  }
  const parameters = readParameters(table, fakeParams({ issuer: 'https://x', ...values }, secrets), issues, context)
  return { parameters, messages: issueTexts(issues.list), references }
}

describe('readParameters', () => {
  it('reads every type', () => {
    const { parameters, messages } = read({
      realm: 'r',
      audience: ['a', 'b'],
      strict: 'FALSE',
      timeout: '5',
      mode: 'write',
      pattern: '{"a":1}',
    })
    expect(messages).toEqual([])
    expect(parameters).toMatchObject({
      issuer: 'https://x',
      realm: 'r',
      audience: ['a', 'b'],
      strict: false,
      timeout: 5,
      mode: 'write',
      pattern: { a: 1 },
    })
  })

  it('returns fallbacks for absent or empty parameters', () => {
    const { parameters, messages } = read({ realm: '', scope: [''], audience: ['', 'x'] })
    expect(messages).toEqual([])
    expect(parameters).toMatchObject({ scope: 'auth', audience: ['x'], strict: true, timeout: 30, mode: 'read' })
    expect(parameters.realm).toBeUndefined()
    expect(parameters.pattern).toBeUndefined()
  })

  it('reports a required parameter that is missing or empty', () => {
    expect(read({ issuer: [] }).messages).toEqual(['error params.issuer: parameter "issuer" is required'])
    expect(read({ issuer: '' }).messages).toEqual(['error params.issuer: parameter "issuer" is required'])
  })

  it('reports an unknown name, with the closest known one', () => {
    expect(read({ audiance: 'x', somethingElse: 'y' }).messages).toEqual([
      'error params.audiance: unknown parameter "audiance" (did you mean "audience"?)',
      'error params.somethingElse: unknown parameter "somethingElse"',
    ])
  })

  it.each([
    [{ strict: 'yes' }, '"strict": must be "true" or "false", not "yes"'],
    [{ timeout: '0' }, '"timeout": must be a whole number from 1 to 60, not "0"'],
    [{ timeout: '5s' }, '"timeout": must be a whole number from 1 to 60, not "5s"'],
    [{ mode: 'Write' }, '"mode": must be one of read, write, not "Write"'],
  ])('reports %j and falls back', (values, message) => {
    const { parameters, messages } = read(values)
    expect(messages).toEqual([`error params.${Object.keys(values)[0]}.0: ${message}`])
    expect(parameters).toMatchObject({ strict: true, timeout: 30, mode: 'read' })
  })

  it('reports what its own parser rejects, with its reason', () => {
    expect(read({ pattern: '{' }).messages[0]).toMatch(/^error params\.pattern\.0: "pattern": .*JSON/)
  })

  it('reports several values where one is expected', () => {
    const { parameters, messages } = read({ realm: ['a', 'b'] })
    expect(messages).toEqual(['error params.realm: parameter "realm" takes one value, not 2'])
    expect(parameters.realm).toBeUndefined()
  })

  it('creates references, as strict as the row says', () => {
    expect(read({ target: 't', chains: ['c1', 'c2'] }).references).toEqual([
      'error params.target.0: target t',
      'warning params.chains.0: chain c1',
      'warning params.chains.1: chain c2',
    ])
    expect(read({ target: '' }).references).toEqual([])
  })

  it('collects the parameters of a pattern by their variable part', () => {
    const { parameters, messages } = read({ 'map.mail.source': 'm', 'map.a.b.source': 'n', 'map.mail.type': 'static' })
    expect(messages).toEqual([])
    expect([...parameters['map.<attribute>.source']]).toEqual([
      ['mail', 'm'],
      ['a.b', 'n'],
    ])
    expect([...parameters['map.<attribute>.type']]).toEqual([['mail', 'static']])
  })

  it('distinguishes patterns from similar names', () => {
    expect(read({ 'map..source': 'x' }).messages).toHaveLength(1)
    expect(read({ mapXmailXsource: 'x' }).messages).toHaveLength(1)
  })

  it('does not treat names of JavaScript itself as rows', () => {
    expect(read({ constructor: 'x', toString: 'y' }).messages).toEqual([
      'error params.constructor: unknown parameter "constructor"',
      'error params.toString: unknown parameter "toString"',
    ])
  })

  it('never shows a secret, whatever the problem', () => {
    const given = { strict: 'hunter2', timeout: 'hunter2', mode: 'hunter2', pattern: 'hunter2', target: 'hunter2' }
    const { messages, references } = read(given, Object.keys(given))
    expect(messages).toHaveLength(5)
    expect(JSON.stringify([messages, references])).not.toContain('hunter2')
  })
})
