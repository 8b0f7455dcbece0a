import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { type ScimBehind, scimBehind } from '#testing/scim/scim-behind.ts'
import { type ScimProxy, startScimProxy } from '#testing/scim/scim-proxy.ts'
import { openTargetOn } from '#testing/scim/scim-target-fixture.ts'
import type { ScimConfig } from './scim-target.ts'

let behind: ScimBehind
let proxy: ScimProxy

beforeAll(async () => {
  behind = await scimBehind()
  proxy = await startScimProxy(behind.client.base)
}, 60_000)
afterAll(async () => {
  proxy?.close()
})
beforeEach(async () => {
  await behind.empty()
  proxy.fault = () => undefined
  proxy.showGroup = (group) => group
})

async function open(more: Partial<ScimConfig> = {}) {
  const target = await openTargetOn(behind, { url: proxy.url, ...more })
  const { request, changes } = targetFixture(target, { attributes: ['a', 'b', 'c'], groups: ['a', 'b', 'c'] })
  const made = async (name: string) => {
    await target.createGroup(name, {}, request)
    return { id: (await target.findGroup(name))?.id ?? '', name }
  }
  const [all, eng] = [await made('all'), await made('eng')]
  changes.length = 0
  return { target, request, changes, all, eng, made }
}

const membersAs = (show: (member: JsonObject) => JsonObject) => (group: JsonObject) => {
  const { members } = group
  return Array.isArray(members) ? { ...group, members: members.filter(isJsonObject).map(show) } : group
}

test('groups are sent and read with their resource type', async () => {
  const { target, request, all, eng } = await open()
  await target.createUser(userOf('ada', { displayName: ['Ada L.'] }, ['all']), ['displayName'], request)
  await target.changeMemberGroups('all', { add: [eng], remove: [] }, request)
  const ada = await target.lookupUserByLogin('ada')
  const { body } = await behind.client.get(`/Groups/${all.id}`)
  expect(body.members).toMatchObject([
    { value: ada?.id, type: 'User' },
    { value: eng.id, type: 'Group', $ref: expect.stringContaining(`/Groups/${eng.id}`) },
  ])
  const display = { users: 'displayName', groups: 'displayName' }
  expect(await target.lookupGroupById(all.id, { members: true, display })).toMatchObject({
    members: [ada?.id],
    memberDisplays: ['Ada L.'],
    memberGroups: [eng],
  })
})

test('a member without a type is identified by its address, and one without a name by its resource', async () => {
  const { target, request, all, eng } = await open()
  await target.changeMemberGroups('all', { add: [eng], remove: [] }, request)
  proxy.showGroup = membersAs(({ type: _, display: __, ...member }) => member)
  expect(await target.lookupGroupByName('all')).toMatchObject({ members: [], memberGroups: [eng] })
  expect((await target.containingGroups([eng.id])).get(eng.id)).toEqual([{ ...all, direct: true }])
})

test('a user whose server reports only direct groups is in no others', async () => {
  const { target, request, eng } = await open()
  await target.createUser(userOf('ada', {}, ['eng']), [], request)
  expect((await target.lookupUserByLogin('ada'))?.groupsAreNested).toBe(false)
  await target.changeMemberGroups('all', { add: [eng], remove: [] }, request)
  const ada = await target.lookupUserByLogin('ada')
  expect(ada).toMatchObject({ groups: ['eng'], groupIds: [eng.id] })
  expect(ada?.groupsAreNested).toBeUndefined()
})

test('after a lost answer the group is read, and the change is reported once', async () => {
  const { target, request, changes, eng } = await open()
  let lost = 0
  proxy.fault = ({ method }) => (method === 'PATCH' && lost++ === 0 ? 'lost' : undefined)
  await target.changeMemberGroups('all', { add: [eng], remove: [] }, request)
  expect(lost).toBe(1)
  expect(changes).toEqual([{ subject: 'group', action: 'add', attribute: 'members', value: 'eng', group: 'all' }])
})

test('a change that never arrived is unreachable, and not reported', async () => {
  const { target, request, changes, eng } = await open()
  proxy.fault = ({ method }) => (method === 'PATCH' ? 'never' : undefined)
  const change = target.changeMemberGroups('all', { add: [eng], remove: [] }, request)
  await expect(change).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  expect(changes).toEqual([])
})

test('a server that reports success and drops the group is detected', async () => {
  const { target, request, changes, eng } = await open()
  proxy.fault = ({ method }) => (method === 'PATCH' ? { status: 200 } : undefined)
  const change = target.changeMemberGroups('all', { add: [eng], remove: [] }, request)
  await expect(change).rejects.toMatchObject({
    code: 'TARGET_FAILED',
    publicText: expect.stringContaining('answered success, but did not change the groups in the group "all"'),
  })
  expect(changes).toEqual([])
})

test.each([
  [400, 'BAD_REQUEST'],
  [403, 'TARGET_FAILED'],
  [501, 'NOT_SUPPORTED'],
])('a server that rejects a group as a member with %i is named as the reason', async (status, code) => {
  const { target, request, changes, eng } = await open()
  proxy.fault = ({ method }) => (method === 'PATCH' ? { status } : undefined)
  const change = target.changeMemberGroups('all', { add: [eng], remove: [] }, request)
  await expect(change).rejects.toMatchObject({
    code,
    publicText: expect.stringContaining('The server behind does not take a group as a member of the group "all"'),
  })
  expect(changes).toEqual([])
})

test('two gateways that close a cycle together leave none', async () => {
  const { target, request, made } = await open()
  const other = await openTargetOn(behind)
  for (let i = 0; i < 5; i++) {
    const [a, b] = [await made(`a${i}`), await made(`b${i}`)]
    const outcomes = await Promise.allSettled([
      target.changeMemberGroups(a.name, { add: [b], remove: [] }, request),
      other.changeMemberGroups(b.name, { add: [a], remove: [] }, request),
    ])
    const refused = outcomes.filter(({ status }) => status === 'rejected')
    expect(refused.length).toBeGreaterThan(0)
    const held = await Promise.all([a, b].map(({ name }) => target.lookupGroupByName(name)))
    expect(held.flatMap((group) => group?.memberGroups ?? [])).toHaveLength(2 - refused.length)
  }
})
