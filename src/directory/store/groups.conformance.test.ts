import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { UserDirectory, UserSync } from '#identity/user-directory.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { migratedSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { codes, openDirectory, openTwice, sync, texts, user } from '#testing/databases/user-directories.ts'

const join = (userID: string, name: string, id: string): UserSync =>
  sync(userID, {}, { groups: [name], expectedGroup: { name, id } })

const groupNames = async (directory: UserDirectory): Promise<string[]> =>
  (await directory.searchGroups({ offset: 0, limit: 10 })).items.map(({ name }) => name)

const mismatch = 'VERSION_MISMATCH'

onEachDatabase('groups of a directory', (freshUrl) => {
  const one = async () => openDirectory(await freshUrl())

  test('finds a group by name and id as it was created', async () => {
    const directory = await one()
    const attributes = new Map([
      ['description', ['All of us']],
      ['gidNumber', ['100']],
    ])
    const made = await directory.createGroup('Staff', attributes)
    const found = await directory.findGroupByName('sTAFF')
    expect(found).toEqual(made)
    expect(found).toMatchObject({ name: 'Staff', description: 'All of us', members: [] })
    expect(await directory.findGroupById(made.id)).toEqual(made)
    expect(await directory.findGroupById('x\0')).toBeUndefined()
    await expect(directory.createGroup('STAFF', new Map())).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(directory.createGroup('a\0', new Map())).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('changes members as a set, and returns only real changes', async () => {
    const directory = await one()
    for (const login of ['Alice', 'bob', 'carol']) await directory.create(user(login))
    await directory.createGroup('staff', new Map())
    expect(await directory.changeMembers('STAFF', { add: ['alice', 'bob', 'ALICE'], remove: ['carol'] })).toEqual([
      { subject: 'group', action: 'add', attribute: 'members', value: 'Alice' },
      { subject: 'group', action: 'add', attribute: 'members', value: 'bob' },
    ])
    expect(await directory.changeMembers('staff', { add: ['alice', 'carol'], remove: ['bob'] })).toEqual([
      { subject: 'group', action: 'delete', attribute: 'members', value: 'bob' },
      { subject: 'group', action: 'add', attribute: 'members', value: 'carol' },
    ])
    expect((await directory.findGroupByName('staff'))?.members).toEqual(['Alice', 'carol'])
    expect((await directory.findGroupByName('staff', { members: false }))?.members).toEqual([])
    expect((await directory.findByLogin('bob'))?.groups).toEqual([])
    expect((await directory.findByLogin('alice'))?.groups).toEqual(['staff'])
  })

  test('reads many members in pages, all of them as they were when the group was read', async () => {
    const directory = await one()
    const count = 1010
    const logins = Array.from({ length: count }, (_, i) => `user${String(i).padStart(4, '0')}`)
    const made = await directory.createGroup('staff', new Map())
    await directory.createGroup('inner', new Map())
    await Promise.all(logins.map((login) => directory.create(user(login, { title: [`Title of ${login}`] }))))
    await directory.changeMembers('staff', { add: logins.slice(0, 1000), remove: [] })
    const few = await directory.findGroupById(made.id, { members: true, inPages: true })
    expect([few?.members.length, few?.memberPages]).toEqual([1000, undefined])
    await directory.changeMembers('staff', { add: logins.slice(1000), remove: [] })
    const inner = (await directory.findGroupByName('inner'))?.id ?? ''
    await directory.changeMemberGroups('staff', { add: [{ name: 'inner', id: inner }], remove: [] })
    const display = { users: 'title', groups: '' }
    const many = await directory.findGroupById(made.id, { members: true, inPages: true, display })
    expect(many).toMatchObject({ name: 'staff', members: [], memberGroups: [{ name: 'inner' }] })
    await directory.changeMembers('staff', { add: [], remove: ['user0000'] })
    await directory.delete('user0001')
    const pages = await Array.fromAsync(many?.memberPages?.() ?? [])
    expect(pages.map(({ members }) => members.length)).toEqual([999, 10])
    const shown = pages.flatMap(({ members, memberDisplays = [], memberIds = [] }) =>
      members.map((login, i) => ({ login, display: memberDisplays[i], id: memberIds[i] })),
    )
    expect(shown.map(({ login }) => login).sort()).toEqual(logins.filter((login) => login !== 'user0001'))
    expect(shown.filter(({ login, display }) => display !== `Title of ${login}`)).toEqual([])
    expect(shown[0]?.id).toBe((await directory.findByLogin(shown[0]?.login ?? ''))?.id)
    const whole = await directory.findGroupByName('staff')
    expect([whole?.members.length, whole?.memberPages]).toEqual([count - 2, undefined])
  })

  test('rejects an unknown group or login, and changes nothing', async () => {
    const directory = await one()
    await directory.create(user('alice'))
    await directory.createGroup('staff', new Map())
    const change = { add: ['alice', 'unknown'], remove: [] }
    await expect(directory.changeMembers('staff', change)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(directory.changeMembers('none', { add: ['alice'], remove: [] })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
    await expect(directory.changeMembers('a\0', { add: ['alice'], remove: [] })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
    expect((await directory.findGroupByName('staff'))?.members).toEqual([])
  })

  test('a change of membership gives the user and the group a new version', async () => {
    const directory = await one()
    await directory.create(user('alice'))
    await directory.create(user('bob', {}, ['staff']))
    const versions = async () => [
      (await directory.findByLogin('alice'))?.version,
      (await directory.findByLogin('bob'))?.version,
      (await directory.findGroupByName('staff'))?.version,
    ]
    const before = await versions()
    await directory.changeMembers('staff', { add: ['alice', 'bob'], remove: [] })
    const after = await versions()
    expect(after.map((version, i) => version !== before[i])).toEqual([true, false, true])
    await directory.deleteGroup('staff')
    expect((await versions())[1]).not.toBe(after[1])
  })

  test('adds and removes many members at the same time', async () => {
    const directory = await one()
    const logins = Array.from({ length: 40 }, (_, i) => `user${i}`)
    for (const login of logins) await directory.create(user(login))
    await directory.createGroup('staff', new Map())
    await Promise.all(logins.map((login) => directory.changeMembers('staff', { add: [login], remove: [] })))
    expect((await directory.findGroupByName('staff'))?.members.toSorted()).toEqual(logins.toSorted())
    await Promise.all(logins.map((login) => directory.changeMembers('staff', { add: [], remove: [login] })))
    expect((await directory.findGroupByName('staff'))?.members).toEqual([])
  })

  test('users created at the same time share the new groups that they name, in any order', async () => {
    const directory = await one()
    await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        directory.create(user(`user${i}`, {}, i % 2 === 0 ? ['A', 'B', 'c'] : ['C', 'b', 'a'])),
      ),
    )
    const groups = await directory.searchGroups({ offset: 0, limit: 10 })
    expect(groups.total).toBe(3)
    expect((await directory.searchGroups({ offset: 0, limit: 0 })).total).toBe(3)
    for (const { name } of groups.items) expect((await directory.findGroupByName(name))?.members).toHaveLength(30)
  })

  test('users who are deleted while groups change leave no membership', async () => {
    const directory = await one()
    const logins = Array.from({ length: 20 }, (_, i) => `user${i}`)
    for (const login of logins) await directory.create(user(login, {}, ['staff']))
    await Promise.allSettled([
      ...logins.map((login) => directory.delete(login)),
      ...logins.map((login) => directory.changeMembers('staff', { add: [], remove: [login] })),
      ...logins.map((login) => directory.sync(sync(login, {}, { groups: ['other'] }))),
    ])
    expect((await directory.searchUsers({ offset: 0, limit: 1 })).total).toBe(0)
    expect((await directory.findGroupByName('staff'))?.members).toEqual([])
  })

  test('deleting a group removes its memberships and nothing else', async () => {
    const directory = await one()
    await directory.create(user('alice', { mail: ['a'] }, ['one', 'two']))
    expect(await directory.deleteGroup('ONE')).toBe(true)
    expect(await directory.deleteGroup('one')).toBe(false)
    expect(await directory.deleteGroup('\0')).toBe(false)
    expect((await directory.findByLogin('alice'))?.groups).toEqual(['two'])
    expect((await directory.searchGroups({ offset: 0, limit: 10 })).items.map(({ name }) => name)).toEqual(['two'])
    expect((await directory.searchGroups({ offset: 0, limit: 0 })).total).toBe(1)
  })

  test('returns ids in the order of their names', async () => {
    const directory = await one()
    for (const login of ['zoe', 'Amy', 'bob']) await directory.create(user(login, {}, ['beta', 'Alpha', 'gamma']))
    const alice = await directory.findByLogin('amy')
    const ids = await Promise.all(
      (alice?.groups ?? []).map(async (name) => (await directory.findGroupByName(name))?.id),
    )
    expect(alice?.groups).toHaveLength(3)
    expect(alice?.groupIds).toEqual(ids)
    const group = await directory.findGroupByName('alpha')
    const members = await Promise.all(
      (group?.members ?? []).map(async (login) => (await directory.findByLogin(login))?.id),
    )
    expect(group?.members).toHaveLength(3)
    expect(group?.memberIds).toEqual(members)
  })

  test('searches groups by name and attribute, without their members', async () => {
    const directory = await one()
    await directory.create(user('alice', {}, ['plain']))
    await directory.createGroup('Special', new Map([['gidNumber', ['7']]]))
    const names = async (attribute: string, value: string) =>
      (await directory.searchGroups({ filter: { kind: 'equal', attribute, value }, offset: 0, limit: 10 })).items
    expect(await names('name', 'PLAIN')).toMatchObject([{ name: 'plain', members: [] }])
    expect(await names('gidnumber', '7')).toMatchObject([{ name: 'Special' }])
    expect(await names('userID', 'alice')).toEqual([])
  })

  test('changes hundreds of members in one call', async () => {
    const directory = await one()
    const logins = Array.from({ length: 300 }, (_, i) => `user${i}`)
    await Promise.all(logins.map((login) => directory.create(user(login))))
    await directory.createGroup('staff', new Map())
    expect(await directory.changeMembers('staff', { add: logins, remove: [] })).toHaveLength(300)
    expect(await directory.changeMembers('staff', { add: [], remove: logins.slice(0, 299) })).toHaveLength(299)
    expect((await directory.findGroupByName('staff'))?.members).toEqual(['user299'])
  })

  test('a change that expects a group happens only while the group has that name', async () => {
    const [directory] = await openTwice(await freshUrl())
    await directory.create(user('ada'))
    const { id } = await directory.createGroup('staff', new Map())
    await expect(directory.sync(join('ada', 'staff', 'another'))).rejects.toMatchObject({ code: mismatch })
    expect(texts(await directory.sync(join('ada', 'STAFF', id)))).toEqual(['group add groups=staff'])
    await directory.updateGroup('staff', { newName: 'people' })
    await expect(directory.sync(join('ada', 'staff', id))).rejects.toMatchObject({ code: mismatch })
    await directory.deleteGroup('people')
    await expect(directory.sync(join('ada', 'people', id))).rejects.toMatchObject({ code: mismatch })
    expect(await groupNames(directory)).toEqual([])
  })

  test('users who join while the group is renamed or deleted are in it or in none', async () => {
    const [first, second] = await openTwice(await freshUrl())
    const logins = Array.from({ length: 20 }, (_, i) => `user${i}`)
    for (const login of logins) await first.create(user(login))
    const { id } = await first.createGroup('old', new Map())
    const joins = (name: string) => logins.map((login) => first.sync(join(login, name, id)))
    const joined = await Promise.allSettled([...joins('old'), second.updateGroup('old', { newName: 'new' })])
    expect([mismatch]).toEqual(expect.arrayContaining([...codes(joined)]))
    expect(await groupNames(second)).toEqual(['new'])
    const left = await Promise.allSettled([...joins('new'), second.deleteGroup('new')])
    expect([mismatch]).toEqual(expect.arrayContaining([...codes(left)]))
    expect(await groupNames(second)).toEqual([])
    for (const login of logins) expect((await first.findByLogin(login))?.groups).toEqual([])
  })
})

describe.skipIf(postgresUrl() === '')('on PostgreSQL', () => {
  test('groups that a user leaves and joins are locked in one order, so that users who move both ways do not deadlock', async () => {
    const url = await migratedSchema()
    const directory = await openDirectory(url)
    for (const name of ['a', 'b']) await directory.createGroup(name, new Map())
    await directory.create(user('ada', {}, ['c', 'd']))
    const other = new pg.Client({ connectionString: url })
    await other.connect()
    onTestFinished(() => other.end())
    const lock = (keys: string) => other.query(`select from entries where key in (${keys}) for update nowait`)
    await other.query('begin')
    await lock("'a'")
    const moving = directory.sync(sync('ada', {}, { groups: ['a', 'b'] }))
    const waiting = 'select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))'
    await expect.poll(async () => (await other.query(waiting)).rowCount).toBe(1)
    expect((await lock("'b', 'c', 'd'")).rowCount).toBe(3)
    await other.query('commit')
    expect(await moving).toHaveLength(4)
  })
})
