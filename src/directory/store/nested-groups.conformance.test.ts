import { expect, test } from 'vitest'
import type { ChangeAudit } from '#identity/account-store.ts'
import { unaudited } from '#identity/entry-changes.ts'
import type { NamedGroup } from '#identity/group.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import {
  changeMemberGroups,
  createGroup,
  createUser,
  deleteGroup,
  joinGroup,
  leaveGroup,
  updateGroup,
  user,
} from '#testing/databases/directory-writes.ts'
import { openTwice } from '#testing/databases/user-directories.ts'

onEachDatabase('nested groups', (freshUrl) => {
  const open = async () => openTwice(await freshUrl())
  const groupsIn = async (directory: UserDirectory, ...names: string[]): Promise<NamedGroup[]> => {
    const made: NamedGroup[] = []
    // One after another: stores return groups in the order of their creation.
    for (const name of names) made.push({ id: (await createGroup(directory, name)).id, name })
    return made
  }
  const nest = (directory: UserDirectory, group: string, ...add: NamedGroup[]) =>
    changeMemberGroups(directory, group, { add, remove: [] })
  const memberGroups = async (directory: UserDirectory, name: string) =>
    (await directory.lookupGroupByName(name))?.memberGroups?.map((group) => group.name)

  test('adds groups as members once, reads them with the group, and removes them', async () => {
    const [directory] = await open()
    const [all, eng, ops] = (await groupsIn(directory, 'All', 'Eng', 'Ops')) as [NamedGroup, NamedGroup, NamedGroup]
    const version = async () => (await directory.lookupGroupByName('all', { members: false }))?.version
    expect(await nest(directory, 'ALL', eng, ops, eng)).toEqual([
      { subject: 'group', action: 'add', attribute: 'members', value: 'Eng' },
      { subject: 'group', action: 'add', attribute: 'members', value: 'Ops' },
    ])
    const nested = await version()
    expect(nested).toBe('2')
    expect(await nest(directory, 'all', eng)).toEqual([])
    expect(await version()).toBe(nested)
    expect((await directory.lookupGroupById(all.id))?.memberGroups).toEqual([eng, ops])
    expect((await directory.lookupGroupById(all.id, { members: false }))?.memberGroups).toBeUndefined()
    const left = await changeMemberGroups(directory, 'all', { add: [], remove: [eng, { id: 'none', name: 'none' }] })
    expect(left).toEqual([{ subject: 'group', action: 'delete', attribute: 'members', value: 'Eng' }])
    expect(await memberGroups(directory, 'all')).toEqual(['Ops'])
    expect(await version()).toBe('3')
  })

  test('records the change in its transaction', async () => {
    const [directory] = await open()
    const [, eng] = (await groupsIn(directory, 'all', 'eng')) as [NamedGroup, NamedGroup]
    const recorded: unknown[] = []
    const request: ChangeAudit = {
      ...unaudited,
      auditWithin: async (_, changes) => {
        recorded.push(...changes)
        throw new Error('the audit is full')
      },
    }
    await expect(directory.changeMemberGroups('all', { add: [eng], remove: [] }, request)).rejects.toThrow()
    expect(recorded).toEqual([{ subject: 'group', action: 'add', attribute: 'members', value: 'eng' }])
    expect(await memberGroups(directory, 'all')).toEqual([])
  })

  test('rejects a group that would contain itself, directly or through others', async () => {
    const [directory] = await open()
    const [a, b, c, d] = (await groupsIn(directory, 'a', 'b', 'c', 'd')) as NamedGroup[] as [
      NamedGroup,
      NamedGroup,
      NamedGroup,
      NamedGroup,
    ]
    await nest(directory, 'a', b)
    await nest(directory, 'b', c)
    for (const [group, member] of [
      ['a', a],
      ['b', a],
      ['c', a],
    ] as const) {
      await expect(nest(directory, group, d, member)).rejects.toMatchObject({ code: 'CONFLICT' })
      expect(await memberGroups(directory, group)).not.toContain('d')
    }
    await nest(directory, 'a', c)
    expect(await memberGroups(directory, 'a')).toEqual(['b', 'c'])
  })

  test('rejects groups that were deleted or renamed, and members that are not groups', async () => {
    const [directory] = await open()
    const [all, eng] = (await groupsIn(directory, 'all', 'eng')) as [NamedGroup, NamedGroup]
    const refused = (group: string, member: NamedGroup, groupId?: string) =>
      expect(
        changeMemberGroups(directory, group, { add: [member], remove: [], ...(groupId && { groupId }) }),
      ).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await refused('none', eng)
    await refused('a\0', eng)
    await refused('all', { id: 'none', name: 'eng' })
    await refused('all', { id: 'x\0', name: 'eng' })
    await refused('all', eng, eng.id)
    await updateGroup(directory, 'eng', { newName: 'engineering' })
    await refused('all', eng)
    await createUser(directory, user('ann'))
    const ann = await directory.lookupUserByLogin('ann')
    await refused('all', { id: ann?.id ?? '', name: 'ann' })
    await changeMemberGroups(directory, 'all', { add: [{ ...eng, name: 'Engineering' }], remove: [], groupId: all.id })
    expect(await memberGroups(directory, 'all')).toEqual(['engineering'])
  })

  test('deleting a group removes it from its parents, which get a new version', async () => {
    const [directory] = await open()
    const [, eng] = (await groupsIn(directory, 'all', 'eng', 'ops')) as [NamedGroup, NamedGroup]
    await nest(directory, 'all', eng)
    await nest(directory, 'ops', eng)
    expect(await deleteGroup(directory, 'eng')).toHaveLength(1)
    for (const name of ['all', 'ops']) {
      expect(await directory.lookupGroupByName(name)).toMatchObject({ memberGroups: [], version: '3' })
    }
    const [again] = (await groupsIn(directory, 'eng')) as [NamedGroup]
    expect(again.id).not.toBe(eng.id)
    expect(await directory.containingGroups([again.id, eng.id])).toEqual(new Map())
  })

  test('finds the containing groups of many groups, through all levels, each once', async () => {
    const [directory] = await open()
    const [a, b, c, d] = (await groupsIn(directory, 'a', 'b', 'c', 'd')) as NamedGroup[] as [
      NamedGroup,
      NamedGroup,
      NamedGroup,
      NamedGroup,
    ]
    await nest(directory, 'a', b, c)
    await nest(directory, 'b', d)
    await nest(directory, 'c', d)
    await nest(directory, 'a', d)
    const filler = Array.from({ length: 200 }, (_, n) => `none ${n}`)
    const found = await directory.containingGroups([d.id, b.id, a.id, d.id, 'x\0', ...filler])
    expect(found).toEqual(
      new Map([
        [
          d.id,
          [
            { ...a, direct: true },
            { ...b, direct: true },
            { ...c, direct: true },
          ],
        ],
        [b.id, [{ ...a, direct: true }]],
      ]),
    )
    await changeMemberGroups(directory, 'a', { add: [], remove: [d] })
    expect((await directory.containingGroups([d.id])).get(d.id)).toEqual([
      { ...a, direct: false },
      { ...b, direct: true },
      { ...c, direct: true },
    ])
  })

  test('a user shows whether one of its groups is nested', async () => {
    const [directory] = await open()
    const [, eng] = (await groupsIn(directory, 'all', 'eng')) as [NamedGroup, NamedGroup]
    await createUser(directory, user('ann', {}, ['eng', 'plain']))
    await createUser(directory, user('bob', {}, ['plain']))
    expect((await directory.lookupUserByLogin('ann'))?.groupsAreNested).toBe(false)
    await nest(directory, 'all', eng)
    const page = await directory.searchUsers({ offset: 0, limit: 10 })
    expect(page.items.map(({ userID, groupsAreNested }) => [userID, groupsAreNested])).toEqual([
      ['ann', true],
      ['bob', false],
    ])
  })

  test('returns the requested display attribute of each member', async () => {
    const [directory] = await open()
    const eng = await createGroup(directory, 'eng', { label: ['Engineering', 'second'] })
    const ops = await createGroup(directory, 'ops')
    await createGroup(directory, 'all')
    await createUser(directory, user('ann', { displayName: ['Ann A', 'Annie'] }, ['all']))
    await createUser(directory, user('bob', {}, ['all']))
    await nest(directory, 'all', eng, ops)
    const display = { users: 'DISPLAYNAME', groups: 'label' }
    expect(await directory.lookupGroupByName('all', { members: true, display })).toMatchObject({
      members: ['ann', 'bob'],
      memberDisplays: ['Ann A', undefined],
      memberGroups: [
        { id: eng.id, name: 'eng', display: 'Engineering' },
        { id: ops.id, name: 'ops' },
      ],
    })
    expect((await directory.lookupGroupByName('all'))?.memberDisplays).toBeUndefined()
  })

  test('one of two changes that close a circle at the same time succeeds', async () => {
    const [first, second] = await open()
    for (let round = 0; round < 8; round++) {
      const [a, b, c, d] = (await groupsIn(
        first,
        ...Array.from({ length: 4 }, (_, n) => `g${round}.${n}`),
      )) as NamedGroup[] as [NamedGroup, NamedGroup, NamedGroup, NamedGroup]
      await nest(first, a.name, b)
      await nest(first, c.name, d)
      // The two changes have no group in common, so that locks of these alone would let both pass.
      const outcomes = await Promise.allSettled([nest(first, b.name, c), nest(second, d.name, a)])
      const lost = outcomes.filter((outcome) => outcome.status === 'rejected')
      expect(lost).toMatchObject([{ reason: { code: 'CONFLICT' } }])
      const members = await Promise.all([b, d].map(({ name }) => memberGroups(first, name)))
      expect(members.flat()).toHaveLength(1)
    }
  })

  test('loses no change when many change users and groups at the same time', async () => {
    const both = await open()
    const [directory] = both
    const through = (n: number): UserDirectory => both[n % 2] ?? directory
    await createGroup(directory, 'all')
    const logins = Array.from({ length: 20 }, (_, n) => `user${n}`)
    for (const login of logins) await createUser(directory, user(login))
    const groups = await groupsIn(directory, ...Array.from({ length: 20 }, (_, n) => `group${n}`))
    await Promise.all([
      ...groups.map((group, n) => nest(through(n), 'all', group)),
      ...logins.map((login, n) => joinGroup(through(n), 'all', [login])),
      ...logins.map((login, n) => joinGroup(through(n), groups[n]?.name ?? '', [login])),
    ])
    const whole = await directory.lookupGroupByName('all')
    expect(whole?.memberGroups).toHaveLength(20)
    expect(whole?.members).toHaveLength(20)
    await Promise.all([
      ...groups.slice(0, 10).map((group, n) => deleteGroup(through(n), group.name)),
      ...groups.slice(10).map((group, n) => changeMemberGroups(through(n), 'all', { add: [], remove: [group] })),
      ...logins.map((login, n) => leaveGroup(through(n), 'all', [login])),
    ])
    expect(await directory.lookupGroupByName('all')).toMatchObject({ memberGroups: [], members: [] })
  })
})
