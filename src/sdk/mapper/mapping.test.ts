import { describe, expect, it } from 'vitest'
import { JsonDocument, type MappingSource } from '#identity/mapping/mapped-value.ts'
import { Issues } from '#kernel/issues.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { MapperModule } from '#sdk/mapper/mapper-module.ts'
import { defineMapper } from '#sdk/mapper/mapper-module.ts'
import { type MappingRule, prepareMapping, type SourceType } from '#sdk/mapper/mapping.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { Mapper } from '#sdk/target/mapper.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParseContext, issueTexts } from '#testing/modules/fake-parse.ts'

const rule = (attribute: string, sourceType: SourceType, source: string): MappingRule => ({
  attribute,
  sourceType,
  source,
  path: ['rules', attribute],
})

const mapperOf = (className: string, reads: readonly string[] | undefined, mapper: Mapper) =>
  defineMapper({ className, aliases: [], prepare: () => ({ reads, create: () => mapper }) })

/** Mapper expressions are class names without parameters. */
const contextOf = (mappers: readonly MapperModule[] = []): ParseContext => ({
  ...fakeParseContext(),
  mapper: (expression, path, issues) => {
    const module = mappers.find(({ className }) => className === expression)
    if (module !== undefined) return module.prepare([], path, issues, fakeParseContext())
    issues.error(path, `no mapper named "${expression}"`)
    return undefined
  },
})

const source: MappingSource = {
  userID: 'ann1',
  groups: [],
  values: (name) => (name === 'mail' ? ['a@x', 'b@x'] : []),
}

async function apply(
  rules: readonly MappingRule[],
  from: MappingSource = source,
  mappers: Record<string, Mapper> = {},
) {
  const context = contextOf(Object.entries(mappers).map(([name, mapper]) => mapperOf(name, [], mapper)))
  const issues = new Issues()
  const mapping = await prepareMapping(rules, issues, context).create(fakeModuleHost())
  expect(issues.list).toEqual([])
  return mapping.apply(from)
}

describe('a mapping', () => {
  it('returns what may be made from an attribute', async () => {
    const mappers = [mapperOf('anything', undefined, { map: () => [] }), mapperOf('nothing', [], { map: () => [] })]
    const rules = [
      rule('copy', 'user', 'mail'),
      rule('text', 'composite', '${first} <${Mail}>'),
      rule('other', 'user', 'phone'),
      rule('fixed', 'static', 'mail'),
      rule('open', 'custom', 'anything'),
      rule('closed', 'custom', 'nothing'),
    ]
    const mapping = await prepareMapping(rules, new Issues(), contextOf(mappers)).create(fakeModuleHost())
    expect(mapping.dependents(['MAIL'])).toEqual(['copy', 'text', 'open'])
    expect(mapping.dependents([])).toEqual([])
  })

  it('yields the results of its rules, in order, without attributes that have no value', async () => {
    const mapped = await apply(
      [
        rule('z', 'user', 'mail'),
        rule('gone', 'user', 'missing'),
        rule('kind', 'static', '${mail}'),
        rule('empty', 'static', ''),
        rule('text', 'composite', '<${mail}>'),
        rule('json', 'composite', '{"v": "${mail}"}'),
        rule('late', 'custom', 'later'),
        rule('now', 'custom', 'now'),
        rule('none', 'custom', 'none'),
        rule('login', 'user', 'TREMOLO_USER_ID'),
      ],
      source,
      {
        later: { map: async (_source, attribute) => [`${attribute} later`] },
        now: { map: () => ['now'] },
        none: { map: async () => [] },
      },
    )
    expect([...mapped]).toEqual([
      ['z', ['a@x', 'b@x']],
      ['kind', ['${mail}']],
      ['text', ['<a@x>']],
      ['json', new JsonDocument({ v: 'a@x' })],
      ['late', ['late later']],
      ['now', ['now']],
      ['login', ['ann1']],
    ])
  })

  it('passes a complex value on unchanged, and a simple one as text', async () => {
    const held: Record<string, JsonValue> = { name: { first: 'A' }, emails: [{ value: 'a' }], tags: ['x', 'y'] }
    const complex: MappingSource = {
      ...source,
      values: (name) => (name === 'tags' ? ['x', 'y'] : name === 'active' ? ['true'] : []),
      json: (name) => held[name],
    }
    const mapped = await apply(
      ['name', 'emails', 'tags', 'active'].map((name) => rule(name, 'user', name)),
      complex,
    )
    expect([...mapped]).toEqual([
      ['name', new JsonDocument({ first: 'A' })],
      ['emails', new JsonDocument([{ value: 'a' }])],
      ['tags', ['x', 'y']],
      ['active', ['true']],
    ])
  })

  it('fails as a whole if a mapper fails, and lets no other failure escape', async () => {
    const mappers: Record<string, Mapper> = {
      slow: { map: () => Promise.reject(new Error('slow failed')) },
      broken: {
        map: () => {
          throw new Error('broken')
        },
      },
    }
    await expect(apply([rule('a', 'custom', 'slow'), rule('b', 'custom', 'broken')], source, mappers)).rejects.toThrow(
      'slow failed',
    )
    await expect(apply([rule('b', 'custom', 'broken')], source, mappers)).rejects.toThrow('broken')
  })

  it('closes its mappers, including those created before one that fails', async () => {
    const closed: string[] = []
    const first = mapperOf('first', [], { map: () => [], close: () => void closed.push('first') })
    const second = defineMapper({
      className: 'second',
      aliases: [],
      prepare: () => ({
        reads: [],
        create: () => {
          throw new Error('no second')
        },
      }),
    })
    const context = contextOf([first, second])
    const prepare = (...names: string[]) =>
      prepareMapping(
        names.map((name) => rule(name, 'custom', name)),
        new Issues(),
        context,
      ).create(fakeModuleHost())
    await expect(prepare('first', 'second')).rejects.toThrow('no second')
    expect(closed).toEqual(['first'])
    const mapping = await prepare('first')
    await mapping.close?.()
    expect(closed).toEqual(['first', 'first'])
  })
})

describe('prepareMapping', () => {
  it('returns what is read and produced, and where', () => {
    const plain = mapperOf('plain', ['x'], { map: () => [] })
    const secretive = mapperOf('secretive', undefined, { map: () => [] })
    const context = contextOf([plain, secretive])
    const rules = [
      rule('a', 'user', 'mail'),
      rule('b', 'composite', '{"v": "${sn} ${TREMOLO_USER_ID}"}'),
      rule('c', 'static', 'mail'),
      rule('d', 'custom', 'plain'),
      rule('e', 'user', 'TREMOLO_USER_ID'),
    ]
    const prepared = prepareMapping(rules, new Issues(), context)
    expect(prepared.reads).toEqual([
      { attribute: 'mail', path: ['rules', 'a'] },
      { attribute: 'sn', path: ['rules', 'b'] },
      { attribute: 'x', path: ['rules', 'd'] },
    ])
    expect(prepared.produces.map(({ attribute }) => attribute)).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(prepared.opaque).toBe(false)
    expect(prepareMapping([rule('a', 'custom', 'secretive')], new Issues(), context).opaque).toBe(true)
  })

  it('reports every invalid rule, at its place', () => {
    const issues = new Issues()
    const rules = [
      rule('a', 'composite', '{"v": '),
      rule('b', 'custom', 'unknown'),
      rule('c', 'user', ''),
      rule('d', 'static', 'fine'),
    ]
    prepareMapping(rules, issues, contextOf())
    expect(issueTexts(issues.list)).toEqual([
      'error rules.a: JSON template: expected a JSON value at character 7',
      'error rules.b: no mapper named "unknown"',
      'error rules.c: the source of "c" must name an attribute',
    ])
  })

  it('warns of an attribute mapped twice, and uses the last rule', async () => {
    const issues = new Issues()
    const rules = [rule('Mail', 'static', 'one'), { ...rule('mail', 'static', 'two'), path: ['rules', 1] }]
    const prepared = prepareMapping(rules, issues, contextOf())
    expect(issues.list).toMatchObject([{ level: 'warning', path: ['rules', 'Mail'] }])
    const mapping = await prepared.create(fakeModuleHost())
    expect([...(await mapping.apply(source))]).toEqual([['mail', ['two']]])
  })
})
