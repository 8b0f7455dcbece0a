import assert from 'node:assert/strict'
import type { NamedGroup } from '#identity/group.ts'
import { casesFor, type TargetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { type GroupTarget, hasLookups, type LookupTarget, nestsGroups, type Target } from '#sdk/target/target.ts'

type NestingTarget = GroupTarget &
  LookupTarget &
  Required<Pick<GroupTarget, 'changeMemberGroups'> & Pick<LookupTarget, 'containingGroups'>>

const nests = (target: Target): target is NestingTarget =>
  nestsGroups(target) && hasLookups(target) && target.containingGroups !== undefined

/** For targets whose groups can be members of groups. */
export const nestingCases = casesFor('nested groups', nests, {
  'users and groups are members side by side, and are kept apart': async (target, fixture) => {
    const { attributes, request, create, sync } = fixture
    const { all, eng, ops } = await made(target, fixture, 'all', 'eng', 'ops')
    // A user of the same name as a group is another member.
    for (const login of ['ada', 'eng']) await create(userOf(login, {}, ['all']))
    await nest(target, fixture, 'all', eng, ops)
    const users = await memberNames(target, 'ada', 'eng')
    assert.deepEqual(await membersOf(target, 'all'), { users, groups: ['eng', 'ops'] })
    assert.equal((await target.lookupGroupById(all.id, { members: false }))?.memberGroups, undefined)
    assert.deepEqual((await target.findUser('eng', attributes, request))?.groups, ['all'])
    await target.changeMemberGroups('all', { add: [], remove: [eng] }, request)
    assert.deepEqual(await membersOf(target, 'all'), { users, groups: ['ops'] })
    await sync(userOf('eng', {}, []))
    await nest(target, fixture, 'all', eng)
    const [ada] = await memberNames(target, 'ada')
    assert.deepEqual(await membersOf(target, 'all'), { users: [ada], groups: ['eng', 'ops'] })
  },
  'a group joins once and leaves once, and the audit says so': async (target, fixture) => {
    const { request, changes } = fixture
    const { eng, ops } = await made(target, fixture, 'all', 'eng', 'ops')
    const reported = (action: string, ...names: string[]) => {
      const shown = changes.map(({ subject, action: done, attribute, value }) => ({
        subject,
        action: done,
        attribute,
        value,
      }))
      const wanted = names.map((value) => ({ subject: 'group', action, attribute: 'members', value }))
      assert.deepEqual(shown, wanted)
      changes.length = 0
    }
    changes.length = 0
    await nest(target, fixture, 'all', eng, ops, eng)
    reported('add', 'eng', 'ops')
    await nest(target, fixture, 'all', eng)
    reported('add')
    await target.changeMemberGroups('all', { add: [], remove: [eng, eng, { id: 'none', name: 'none' }] }, request)
    reported('delete', 'eng')
    await target.changeMemberGroups('all', { add: [], remove: [eng] }, request)
    reported('delete')
    await target.changeMemberGroups('all', { add: [eng], remove: [ops] }, request)
    assert.deepEqual((await membersOf(target, 'all')).groups, ['eng'])
    await target.changeMemberGroups('all', { add: [], remove: [eng] }, request)
    assert.deepEqual((await membersOf(target, 'all')).groups, [])
  },
  'no group contains itself, directly or through others, and then nothing changes': async (target, fixture) => {
    const { all, eng, ops, other } = await made(target, fixture, 'all', 'eng', 'ops', 'other')
    await nest(target, fixture, 'all', eng)
    await nest(target, fixture, 'eng', ops)
    for (const name of ['all', 'eng', 'ops']) {
      await assert.rejects(nest(target, fixture, name, other, all), { code: 'CONFLICT' })
      assert.ok(!(await membersOf(target, name)).groups.includes('other'))
    }
    // Two paths down are not a circle.
    await nest(target, fixture, 'all', ops)
    assert.deepEqual((await membersOf(target, 'all')).groups, ['eng', 'ops'])
  },
  'of two that close a circle at the same time, not both succeed': async (target, fixture) => {
    const { all, eng } = await made(target, fixture, 'all', 'eng')
    const outcomes = await Promise.allSettled([nest(target, fixture, 'all', eng), nest(target, fixture, 'eng', all)])
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason?.code] : []))
    assert.ok(refused.length > 0 && refused.every((code) => code === 'CONFLICT'), String(refused))
    const nested = await Promise.all(['all', 'eng'].map((name) => membersOf(target, name)))
    assert.equal(nested.flatMap(({ groups }) => groups).length, 2 - refused.length)
  },
  'a group that is not there is not found, and then nothing changes': async (target, fixture) => {
    const { request } = fixture
    const { all, eng, ops } = await made(target, fixture, 'all', 'eng', 'ops')
    const refused = async (name: string, added: NamedGroup, groupId?: string) => {
      const change = { add: [ops, added], remove: [], ...(groupId === undefined ? {} : { groupId }) }
      await assert.rejects(target.changeMemberGroups(name, change, request), { code: 'NOT_FOUND' })
    }
    await refused('none', eng)
    await refused('all', { id: 'none', name: 'none' })
    await refused('all', { id: 'none', name: 'eng' })
    await refused('all', eng, eng.id)
    await refused('all', { id: eng.id, name: 'engineering' })
    assert.deepEqual((await membersOf(target, 'all')).groups, [])
    await target.changeMemberGroups('all', { add: [eng], remove: [], groupId: all.id }, request)
    assert.deepEqual((await membersOf(target, 'all')).groups, ['eng'])
  },
  'a deleted group is no longer a member, even after another group got its name': async (target, fixture) => {
    const { request } = fixture
    const { eng, ops } = await made(target, fixture, 'all', 'eng', 'ops')
    await nest(target, fixture, 'all', eng)
    await nest(target, fixture, 'eng', ops)
    await target.deleteGroup('eng', request)
    assert.deepEqual((await membersOf(target, 'all')).groups, [])
    assert.deepEqual(await above(target, ops), [])
    const { eng: again } = await made(target, fixture, 'eng')
    assert.deepEqual((await membersOf(target, 'all')).groups, [])
    assert.deepEqual(await above(target, again), [])
  },
  'containing groups are known through all levels, each once': async (target, fixture) => {
    const { attributes, request, create } = fixture
    const { a, b, c, d } = await made(target, fixture, 'a', 'b', 'c', 'd')
    await nest(target, fixture, 'a', b, c)
    await nest(target, fixture, 'b', d)
    await nest(target, fixture, 'c', d)
    await create(userOf('ada', {}, ['d']))
    assert.deepEqual((await target.findUser('ada', attributes, request))?.groups, ['d'])
    assert.deepEqual(await above(target, d), ['a indirect', 'b direct', 'c direct'])
    const found = await target.containingGroups([d.id, b.id, a.id, d.id, 'none'])
    assert.deepEqual(found.get(b.id), [{ ...a, direct: true }])
    assert.deepEqual(found.get(a.id) ?? [], [])
    assert.equal(found.get(d.id)?.length, 3)
    await nest(target, fixture, 'a', d)
    assert.deepEqual(await above(target, d), ['a direct', 'b direct', 'c direct'])
  },
  'many changes at the same time lose nothing': async (target, fixture) => {
    const { request, create, sync } = fixture
    const numbers = Array.from({ length: 8 }, (_, i) => i)
    const groups = await made(target, fixture, 'all', ...numbers.map((i) => `team${i}`))
    const teams = numbers.map((i) => groups[`team${i}`] as NamedGroup)
    for (const i of numbers) await create(userOf(`user${i}`))
    await Promise.all([
      ...teams.map((team) => nest(target, fixture, 'all', team)),
      ...numbers.map((i) => sync(userOf(`user${i}`, {}, ['all']))),
    ])
    const users = await memberNames(target, ...numbers.map((i) => `user${i}`))
    assert.deepEqual(await membersOf(target, 'all'), { users, groups: teams.map(({ name }) => name) })
    await Promise.all([
      ...teams.map((team) => target.changeMemberGroups('all', { add: [], remove: [team] }, request)),
      ...numbers.map((i) => sync(userOf(`user${i}`))),
    ])
    assert.deepEqual(await membersOf(target, 'all'), { users: [], groups: [] })
  },
})

async function made<N extends string>(
  target: NestingTarget,
  { request }: TargetFixture,
  ...names: N[]
): Promise<Record<N, NamedGroup>> {
  const groups: [N, NamedGroup][] = []
  for (const name of names) {
    await target.createGroup(name, {}, request)
    const found = await target.lookupGroupByName(name, { members: false })
    groups.push([name, { id: found?.id ?? '', name: found?.name ?? '' }])
  }
  return Object.fromEntries(groups) as Record<N, NamedGroup>
}

const nest = (target: NestingTarget, { request }: TargetFixture, name: string, ...add: NamedGroup[]) =>
  target.changeMemberGroups(name, { add, remove: [] }, request)

async function membersOf(target: NestingTarget, name: string) {
  const group = await target.lookupGroupByName(name, { members: true })
  return {
    users: [...(group?.members ?? [])].sort(),
    groups: (group?.memberGroups ?? []).map((one) => one.name).sort(),
  }
}

/** How a group names these users. */
async function memberNames(target: NestingTarget, ...logins: string[]): Promise<string[]> {
  const names = logins.map(async (login) =>
    target.groupMembersAreIds ? ((await target.lookupUserByLogin(login))?.id ?? '') : login,
  )
  return (await Promise.all(names)).sort()
}

async function above(target: NestingTarget, { id }: NamedGroup): Promise<string[]> {
  const found = (await target.containingGroups([id])).get(id) ?? []
  return found.map(({ name, direct }) => `${name} ${direct ? 'direct' : 'indirect'}`).sort()
}
