import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { syncOptions, userOf } from '#sdk/conformance/target-fixture.ts'
import { quietRequest as request } from '#testing/ldap/ldap-target.ts'
import { type ScimBehind, scimBehind } from '#testing/scim/scim-behind.ts'
import { type ScimProxy, startScimProxy } from '#testing/scim/scim-proxy.ts'
import { openTargetOn } from '#testing/scim/scim-target-fixture.ts'
import type { ScimConfig } from './scim-target.ts'

const sizes = { small: 2, large: 150 } as const

let behind: ScimBehind
let proxy: ScimProxy

beforeAll(async () => {
  behind = await scimBehind()
  proxy = await startScimProxy(behind.client.base)
  const target = await openTargetOn(behind)
  for (const name of [...Object.keys(sizes), 'inner']) await target.createGroup(name, {}, request)
  for (let i = 0; i < sizes.large; i++) {
    const groups = i < sizes.small ? ['small', 'large'] : ['large']
    await target.createUser(userOf(`other${i}`, {}, groups), [], request)
  }
  await target.createUser(userOf('ada'), [], request)
  target.close()
}, 120_000)
afterAll(async () => {
  proxy?.close()
})

async function open(more: Partial<ScimConfig> = {}) {
  proxy.ignoresFilters = false
  const target = await openTargetOn(behind, { url: proxy.url, ...more })
  onTestFinished(() => target.close())
  const groupNamed = async (name: string) => ({ name, id: (await target.findGroup(name))?.id ?? '' })
  /** The length of the answers to joining and leaving the group. */
  const cost = async (group: string, change: (group: string, joins: boolean) => Promise<void>) => {
    const lengths: number[] = []
    for (const joins of [true, false]) {
      const before = proxy.answered
      await change(group, joins)
      lengths.push(proxy.answered - before)
    }
    return lengths
  }
  const expectSame = async (change: (group: string, joins: boolean) => Promise<void>) => {
    await cost('small', change)
    const [small, large] = [await cost('small', change), await cost('large', change)]
    for (const [i, length] of small.entries()) {
      expect(length).toBeGreaterThan(0)
      // One element of `members` has more than 100 characters.
      expect(Math.abs((large[i] ?? 0) - length)).toBeLessThan(200)
    }
  }
  return { target, expectSame, groupNamed }
}

const groupsOf = (joins: boolean, group: string): string[] => (joins ? [group] : [])

test.each(['user', 'group'] as const)('a user joins and leaves a group of any size, memberships by %s', async (by) => {
  const { target, expectSame } = await open({ memberships: by })
  await expectSame(async (group, joins) => {
    await target.syncUser(userOf('ada', {}, groupsOf(joins, group)), syncOptions([]), request)
    expect((await target.lookupUserByLogin('ada'))?.groups).toEqual(groupsOf(joins, group))
  })
})

test('a group joins and leaves a group of any size', async () => {
  const { target, expectSame, groupNamed } = await open()
  const inner = await groupNamed('inner')
  await expectSame(async (group, joins) => {
    const change = joins ? { add: [inner], remove: [] } : { add: [], remove: [inner] }
    await target.changeMemberGroups(group, change, request)
    const parents = (await target.containingGroups([inner.id])).get(inner.id) ?? []
    expect(parents.map(({ name }) => name)).toEqual(groupsOf(joins, group))
  })
})

test('the memberships of a server that ignores filters are read from its groups', async () => {
  const { target } = await open({ memberships: 'group' })
  proxy.ignoresFilters = true
  expect((await target.lookupUserByLogin('ada'))?.groups).toEqual([])
  expect([...((await target.lookupUserByLogin('other0'))?.groups ?? [])].sort()).toEqual(['large', 'small'])
  await target.syncUser(userOf('ada', {}, ['small']), syncOptions([]), request)
  expect((await target.lookupUserByLogin('ada'))?.groups).toEqual(['small'])
  await target.syncUser(userOf('ada'), syncOptions([]), request)
})
