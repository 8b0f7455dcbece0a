import { expect, test } from 'vitest'
import type { GroupReadOptions } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import type { LookupTarget, Target } from '#sdk/target/target.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import target from './target.ts'

/** How groups were read. */
const reads: GroupReadOptions[] = []
const ada = { userID: 'ada', attributes: new Attributes(), groups: ['admins'] }
const people = {
  lookupUserByLogin: async (login: string) => (login === 'ada' ? ada : undefined),
  lookupGroupByName: async (name: string, options: GroupReadOptions) => {
    reads.push(options)
    return { id: '7', name, members: options.members ? ['ada'] : [] }
  },
} as unknown as LookupTarget
const mute = { findUser: async () => undefined } as unknown as Target

function create(params: ParamValues) {
  const prepared = target.prepare(fakeParams(params), noIssues(), fakeParseContext())
  const host = fakeModuleHost({ targets: { people, mute } })
  return prepared.create({ ...host, suffix: Dn.parse('ou=staff,o=T') })
}

test('containers are below the suffix, with the configured naming attributes', async () => {
  const insert = await create({ target: 'people', people: 'ou=a,ou=b', groups: 'ou=teams', userAttribute: 'login' })
  const filter = { kind: 'present', attribute: 'login' } as const
  const base = Dn.parse('login=ada,ou=a,ou=b,ou=staff,o=T')
  const { entries } = await insert.search({ base, scope: 'base', filter, limit: 1 })
  expect(entries[0]?.attributes.values('memberOf')).toEqual(['cn=admins,ou=teams,ou=staff,o=T'])
  expect(await insert.isMember(Dn.parse('cn=admins,ou=teams,ou=staff,o=T'), base)).toBe(true)
  expect(insert.bind).toBeUndefined()
})

test('members of a group are read only if the search needs them', async () => {
  const insert = await create({ target: 'people' })
  const base = Dn.parse('cn=admins,ou=groups,ou=staff,o=T')
  const anything = { kind: 'present', attribute: 'objectClass' } as const
  const search = { base, scope: 'base', filter: anything, limit: 1 } as const
  const member = 'uid=ada,ou=staff,o=T'
  const isIn = { kind: 'equal', attribute: 'uniqueMember', value: member } as const
  const entries = []
  for (const one of [
    { ...search, attributes: ['cn'] },
    { ...search, attributes: ['cn', 'UNIQUEMEMBER'] },
    { ...search, attributes: ['cn'], filter: isIn },
    search,
  ]) {
    reads.length = 0
    const { entries: found } = await insert.search(one)
    entries.push([reads.map(({ members }) => members), found[0]?.attributes.values('uniqueMember')])
  }
  expect(entries).toEqual([
    [[false], []],
    [[true], [member]],
    [[true], [member]],
    [[true], [member]],
  ])
})

test('a target without lookups is rejected', async () => {
  await expect(create({ target: 'mute' })).rejects.toThrow('"mute" has no look-ups')
})
