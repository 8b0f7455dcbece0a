import { describe, expect, it } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import type { Group } from '#identity/group.ts'
import { JsonDocument, userSource } from '#identity/mapping/mapped-value.ts'
import { Issues } from '#kernel/issues.ts'
import type { LookupTarget, Target } from '#sdk/target/target.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParseContext, issueTexts } from '#testing/modules/fake-parse.ts'
import generateGroups from './generate-groups.ts'

const never = (): never => {
  throw new Error('must not be called')
}
const plainTarget: Target = { findUser: never, createUser: never, syncUser: never, deleteUser: never }

function lookupTarget(groupHasOwnId: boolean, lookupGroupByName: LookupTarget['lookupGroupByName']): LookupTarget {
  return {
    ...plainTarget,
    lookupUserByLogin: never,
    lookupUserById: never,
    searchUsers: never,
    lookupGroupByName,
    lookupGroupById: never,
    searchGroups: never,
    groupMembersAreIds: false,
    userIdIsLogin: true,
    groupHasOwnId,
  }
}

const groupOf = (name: string): Group => ({ id: `id of ${name}`, name, members: [] })

const prepare = (...parameters: string[]) => {
  const issues = new Issues()
  const context = fakeParseContext()
  const instance = generateGroups.prepare(parameters, ['source'], issues, context)
  return { instance, messages: issueTexts(issues.list), references: context.references }
}

async function map(
  parameters: string[],
  groups: string[],
  options: Parameters<typeof fakeModuleHost>[0],
  memberOf: string[] = [],
) {
  const mapper = await prepare(...parameters).instance?.create(fakeModuleHost(options))
  const value = await mapper?.map(
    userSource({ userID: 'a', groups, attributes: Attributes.from({ memberOf }) }),
    'groups',
  )
  return value instanceof JsonDocument ? value.value : value
}

describe('mappers.GenerateGroups from a target', () => {
  const fromTarget = ['false', 'https://h/scim/', 't']

  it('uses names if names are the ids', async () => {
    const expected = [
      { value: 'a', $ref: 'https://h/scim/Groups/a', display: 'a' },
      { value: 'x/../y?', $ref: 'https://h/scim/Groups/x%2F..%2Fy%3F', display: 'x/../y?' },
    ]
    const names = ['a', 'x/../y?']
    expect(await map(fromTarget, names, { targets: { t: lookupTarget(false, never) } })).toEqual(expected)
    expect(await map(fromTarget, names, { targets: { t: plainTarget } })).toEqual(expected)
  })

  it('looks nothing up if the ids were read along with the user', async () => {
    const mapper = await prepare(...fromTarget).instance?.create(
      fakeModuleHost({ targets: { t: lookupTarget(true, never) } }),
    )
    const user = { userID: 'a', attributes: new Attributes(), groups: ['b', 'a'], groupIds: ['2', '1'] }
    expect(await mapper?.map(userSource(user), 'groups')).toEqual(
      new JsonDocument([
        { value: '2', $ref: 'https://h/scim/Groups/2', display: 'b' },
        { value: '1', $ref: 'https://h/scim/Groups/1', display: 'a' },
      ]),
    )
  })

  it('translates names to ids, in order, and skips unknown ones', async () => {
    const target = lookupTarget(true, async (name) => (name === 'gone' ? undefined : groupOf(name)))
    expect(await map(fromTarget, ['b', 'gone', 'a'], { targets: { t: target } })).toEqual([
      { value: 'id of b', $ref: 'https://h/scim/Groups/id%20of%20b', display: 'b' },
      { value: 'id of a', $ref: 'https://h/scim/Groups/id%20of%20a', display: 'a' },
    ])
  })

  it('reads groups without members if the target supports it', async () => {
    const target = {
      ...lookupTarget(true, never),
      findGroup: async (name: string) => groupOf(name),
      createGroup: never,
      deleteGroup: never,
    }
    expect(await map(fromTarget, ['a'], { targets: { t: target } })).toMatchObject([{ value: 'id of a' }])
  })

  it('looks up a few groups at a time', async () => {
    let running = 0
    let most = 0
    const target = lookupTarget(true, async (name) => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setImmediate(resolve))
      running--
      return groupOf(name)
    })
    const names = Array.from({ length: 30 }, (_, i) => `g${i}`)
    expect(await map(fromTarget, names, { targets: { t: target } })).toHaveLength(30)
    expect(most).toBe(8)
  })

  it('returns nothing without groups, and fails if the target fails', async () => {
    expect(await map(fromTarget, [], { targets: { t: lookupTarget(true, never) } })).toEqual([])
    const down = lookupTarget(true, async () => Promise.reject(new Error('down')))
    await expect(map(fromTarget, ['a'], { targets: { t: down } })).rejects.toThrow('down')
  })
})

describe('mappers.GenerateGroups from the directory', () => {
  const fromDirectory = ['TRUE', 'https://h', 'memberOf', 'entryUUID']
  const entries = [
    { dn: Dn.parse('cn=Admins,o=x'), attributes: Attributes.from({ cn: ['Admins'], entryUUID: ['u-1'] }) },
    { dn: Dn.parse('cn=No Id,o=x'), attributes: Attributes.from({ cn: ['No Id'] }) },
    { dn: Dn.parse('ou=Nameless,o=x'), attributes: Attributes.from({ entryUUID: ['u-2'] }) },
  ]

  it('takes the id from the entry of each name, and skips the others', async () => {
    const names = ['CN=admins, O=x', 'cn=No Id,o=x', 'cn=gone,o=x', 'not a name', '', 'ou=Nameless,o=x']
    expect(await map(fromDirectory, ['ignored'], { entries }, names)).toEqual([
      { value: 'u-1', $ref: 'https://h/Groups/u-1', display: 'Admins' },
      { value: 'u-2', $ref: 'https://h/Groups/u-2', display: 'Nameless' },
    ])
  })

  it('with three parameters the id is the name of the group', async () => {
    const expected = [{ value: 'Admins', $ref: 'https://h/Groups/Admins', display: 'Admins' }]
    for (const end of [[], ['']]) {
      const parameters = ['true', 'https://h', 'memberOf', ...end]
      expect(await map(parameters, [], { entries }, ['cn=admins,o=x'])).toEqual(expected)
    }
  })
})

describe('its parameters', () => {
  it('refer to the target, and declare the attributes it reads', () => {
    const target = prepare('false', 'https://h', 't', '')
    expect(target.references).toEqual([{ kind: 'target', name: 't', path: ['source'] }])
    expect(target.instance?.reads).toEqual([])
    expect(prepare('true', 'https://h', 'memberOf', 'id').instance?.reads).toEqual(['memberOf'])
  })

  it.each([
    [[], /must be "true" .* or "false"/],
    [['maybe', 'x', 'y'], /must be "true" .* or "false"/],
    [['false', 'https://h'], /missing: target$/],
    [['true', 'https://h', '', 'id'], /missing: memberOfAttribute$/],
    [['true', 'https://h'], /missing: memberOfAttribute, groupIdAttribute$/],
    [['true', 'https://h', ''], /missing: memberOfAttribute$/],
    [['false', 'https://h', 't', 'x'], /; given: 4$/],
  ])('%j are reported', (parameters, message) => {
    const { instance, messages, references } = prepare(...parameters)
    expect(instance).toBeUndefined()
    expect(references).toEqual([])
    expect(messages[0]).toMatch(message)
  })
})
