import { describe, expect, it } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { NamedGroup } from '#identity/group.ts'
import { JsonDocument, userSource } from '#identity/mapping/mapped-value.ts'
import { Issues } from '#kernel/issues.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParseContext, issueTexts } from '#testing/modules/fake-parse.ts'
import generateGroups from './generate-groups.ts'

const prepare = (...parameters: string[]) => {
  const issues = new Issues()
  const context = fakeParseContext()
  const instance = generateGroups.prepare(parameters, ['source'], issues, context)
  return { instance, messages: issueTexts(issues.list), references: context.references }
}

/** The result, and the names that the gateway was asked for. */
async function map(parameters: string[], memberships?: readonly NamedGroup[]) {
  const asked: (readonly string[] | undefined)[] = []
  const attributes = Attributes.from({ memberOf: ['cn=a,o=x'] })
  const source = {
    ...userSource({ userID: 'a', groups: ['a', 'x/../y?'], attributes }),
    ...(memberships === undefined
      ? {}
      : {
          memberships: async (names?: readonly string[]) => {
            asked.push(names)
            return memberships
          },
        }),
  }
  const mapper = await prepare(...parameters).instance?.create(fakeModuleHost())
  const value = await mapper?.map(source, 'groups')
  return { value: value instanceof JsonDocument ? value.value : value, asked }
}

describe('mappers.GenerateGroups', () => {
  const shown = [
    { id: 'group:4', name: 'red' },
    { id: 'x/../y?', name: 'blue' },
  ]
  const expected = [
    { value: 'group:4', $ref: 'https://h/scim/Groups/group:4', display: 'red' },
    { value: 'x/../y?', $ref: 'https://h/scim/Groups/x%2F..%2Fy%3F', display: 'blue' },
  ]

  it.each([
    [['false', 'https://h/scim', 't'], undefined],
    [['true', 'https://h/scim/', 't'], undefined],
    [['TRUE', 'https://h/scim', 'memberOf', 'entryUUID'], ['cn=a,o=x']],
  ])('%j shows groups with the ids of the gateway', async (parameters, names) => {
    expect(await map(parameters, shown)).toEqual({ value: expected, asked: [names] })
  })

  it('has no value without groups', async () => {
    expect((await map(['false', 'https://h', 't'], [])).value).toEqual([])
  })

  it('shows names outside of a gateway', async () => {
    expect((await map(['false', 'https://h', 't'])).value).toEqual([
      { value: 'a', $ref: 'https://h/Groups/a', display: 'a' },
      { value: 'x/../y?', $ref: 'https://h/Groups/x%2F..%2Fy%3F', display: 'x/../y?' },
    ])
  })
})

describe('its parameters', () => {
  it('refer to the target, or declare the attribute it reads', () => {
    for (const flag of ['false', 'true']) {
      const target = prepare(flag, 'https://h', 't', '')
      expect(target.references).toEqual([{ kind: 'target', name: 't', path: ['source'] }])
      expect(target.instance?.reads).toEqual([])
    }
    const attribute = prepare('true', 'https://h', 'memberOf', 'id')
    expect(attribute.references).toEqual([])
    expect(attribute.instance?.reads).toEqual(['memberOf'])
  })

  it.each([
    [[], /must be "true" .* or "false"/],
    [['maybe', 'x', 'y'], /must be "true" .* or "false"/],
    [['false', 'https://h'], /missing: target$/],
    [['true', 'https://h', '', 'id'], /missing: memberOfAttribute$/],
    [['true', 'https://h'], /missing: target$/],
    [['false', 'https://h', 't', 'x'], /; given: 4$/],
    [['true', 'https://h', 'm', 'x', 'y'], /; given: 5$/],
  ])('%j are reported', (parameters, message) => {
    const { instance, messages, references } = prepare(...parameters)
    expect(instance).toBeUndefined()
    expect(references).toEqual([])
    expect(messages[0]).toMatch(message)
  })
})
