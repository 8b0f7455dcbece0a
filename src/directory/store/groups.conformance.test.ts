import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { UserDirectory } from '#identity/user-directory.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import {
  changeMemberGroups,
  createGroup,
  createUser,
  deleteGroup,
  deleteUser,
  joinGroup,
  leaveGroup,
  sync,
  syncUser,
  updateGroup,
  user,
} from '#testing/databases/directory-writes.ts'
import { migratedSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { codes, openDirectory, openTwice, texts } from '#testing/databases/user-directories.ts'

const join = (userID: string, name: string, id: string) =>
  sync(userID, {}, { groups: [name], expectedGroup: { name, id } })

const groupNames = async (directory: UserDirectory): Promise<string[]> =>
  (await directory.searchGroups({ offset: 0, limit: 10 })).items.map(({ name }) => name)

const mismatch = 'VERSION_MISMATCH'

onEachDatabase('groups of a directory', (freshUrl) => {
  const one = async () => openDirectory(await freshUrl())

  test('finds a group by name and id as it was created', async () => {
    const directory = await one()
    const attributes = { description: ['All of us'], gidNumber: ['100'] }
    const made = await createGroup(directory, 'Staff', attributes)
    const found = await directory.lookupGroupByName('sTAFF')
    expect(found).toEqual(made)
    expect(found).toMatchObject({ name: 'Staff', description: 'All of us', members: [] })
    expect(await directory.lookupGroupById(made.id)).toEqual(made)
    expect(await directory.lookupGroupById('x\0')).toBeUndefined()
    await expect(createGroup(directory, 'STAFF')).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(createGroup(directory, 'a\0')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('users join and leave a group, with real changes only', async () => {
    const directory = await one()
    for (const login of ['Alice', 'bob', 'carol']) await createUser(directory, user(login))
    await createGroup(directory, 'staff')
    expect(texts(await joinGroup(directory, 'STAFF', ['alice', 'carol']))).toEqual(
      Array(2).fill('group add groups=staff'),
    )
    expect(texts(await joinGroup(directory, 'staff', ['ALICE', 'bob']))).toEqual(['group add groups=staff'])
    expect(texts(await leaveGroup(directory, 'staff', ['bob']))).toEqual(['group delete groups=staff'])
    expect((await directory.lookupGroupByName('staff'))?.members).toEqual(['Alice', 'carol'])
    expect((await directory.lookupGroupByName('staff', { members: false }))?.members).toEqual([])
    expect((await directory.lookupUserByLogin('bob'))?.groups).toEqual([])
    expect((await directory.lookupUserByLogin('alice'))?.groups).toEqual(['staff'])
  })

  test('reads many members in pages, all of them as they were when the group was read', async () => {
    const directory = await one()
    const count = 1010
    const logins = Array.from({ length: count }, (_, i) => `user${String(i).padStart(4, '0')}`)
    const made = await createGroup(directory, 'staff')
    await createGroup(directory, 'inner')
    await Promise.all(logins.map((login) => createUser(directory, user(login, { title: [`Title of ${login}`] }))))
    await joinGroup(directory, 'staff', logins.slice(0, 1000))
    const few = await directory.lookupGroupById(made.id, { members: true, inPages: true })
    expect([few?.members.length, few?.memberPages]).toEqual([1000, undefined])
    await joinGroup(directory, 'staff', logins.slice(1000))
    const inner = (await directory.lookupGroupByName('inner'))?.id ?? ''
    await changeMemberGroups(directory, 'staff', { add: [{ name: 'inner', id: inner }], remove: [] })
    const display = { users: 'title', groups: '' }
    const many = await directory.lookupGroupById(made.id, { members: true, inPages: true, display })
    expect(many).toMatchObject({ name: 'staff', members: [], memberGroups: [{ name: 'inner' }] })
    await leaveGroup(directory, 'staff', ['user0000'])
    await deleteUser(directory, 'user0001')
    const pages = await Array.fromAsync(many?.memberPages?.() ?? [])
    expect(pages.map(({ members }) => members.length)).toEqual([999, 10])
    const shown = pages.flatMap(({ members, memberDisplays = [], memberIds = [] }) =>
      members.map((login, i) => ({ login, display: memberDisplays[i], id: memberIds[i] })),
    )
    expect(shown.map(({ login }) => login).sort()).toEqual(logins.filter((login) => login !== 'user0001'))
    expect(shown.filter(({ login, display }) => display !== `Title of ${login}`)).toEqual([])
    expect(shown[0]?.id).toBe((await directory.lookupUserByLogin(shown[0]?.login ?? ''))?.id)
    const whole = await directory.lookupGroupByName('staff')
    expect([whole?.members.length, whole?.memberPages]).toEqual([count - 2, undefined])
  })

  test('a change of membership gives the user and the group a new version', async () => {
    const directory = await one()
    await createUser(directory, user('alice'))
    await createUser(directory, user('bob', {}, ['staff']))
    const versions = async () => [
      (await directory.lookupUserByLogin('alice'))?.version,
      (await directory.lookupUserByLogin('bob'))?.version,
      (await directory.lookupGroupByName('staff'))?.version,
    ]
    const before = await versions()
    await joinGroup(directory, 'staff', ['alice', 'bob'])
    const after = await versions()
    expect(after.map((version, i) => version !== before[i])).toEqual([true, false, true])
    await deleteGroup(directory, 'staff')
    expect((await versions())[1]).not.toBe(after[1])
  })

  test('adds and removes many members at the same time', async () => {
    const directory = await one()
    const logins = Array.from({ length: 40 }, (_, i) => `user${i}`)
    for (const login of logins) await createUser(directory, user(login))
    await createGroup(directory, 'staff')
    await Promise.all(logins.map((login) => joinGroup(directory, 'staff', [login])))
    expect((await directory.lookupGroupByName('staff'))?.members.toSorted()).toEqual(logins.toSorted())
    await Promise.all(logins.map((login) => leaveGroup(directory, 'staff', [login])))
    expect((await directory.lookupGroupByName('staff'))?.members).toEqual([])
  })

  test('users created at the same time share the new groups that they name, in any order', async () => {
    const directory = await one()
    await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        createUser(directory, user(`user${i}`, {}, i % 2 === 0 ? ['A', 'B', 'c'] : ['C', 'b', 'a'])),
      ),
    )
    const groups = await directory.searchGroups({ offset: 0, limit: 10 })
    expect(groups.total).toBe(3)
    expect((await directory.searchGroups({ offset: 0, limit: 0 })).total).toBe(3)
    for (const { name } of groups.items) expect((await directory.lookupGroupByName(name))?.members).toHaveLength(30)
  })

  test('users who are deleted while groups change leave no membership', async () => {
    const directory = await one()
    const logins = Array.from({ length: 20 }, (_, i) => `user${i}`)
    for (const login of logins) await createUser(directory, user(login, {}, ['staff']))
    await Promise.allSettled([
      ...logins.map((login) => deleteUser(directory, login)),
      ...logins.map((login) => leaveGroup(directory, 'staff', [login])),
      ...logins.map((login) => syncUser(directory, sync(login, {}, { groups: ['other'] }))),
    ])
    expect((await directory.searchUsers({ offset: 0, limit: 1 })).total).toBe(0)
    expect((await directory.lookupGroupByName('staff'))?.members).toEqual([])
  })

  test('deleting a group removes its memberships and nothing else', async () => {
    const directory = await one()
    await createUser(directory, user('alice', { mail: ['a'] }, ['one', 'two']))
    expect(texts(await deleteGroup(directory, 'ONE'))).toEqual(['entry delete name=one'])
    expect(await deleteGroup(directory, 'one')).toEqual([])
    expect(await deleteGroup(directory, '\0')).toEqual([])
    expect((await directory.lookupUserByLogin('alice'))?.groups).toEqual(['two'])
    expect((await directory.searchGroups({ offset: 0, limit: 10 })).items.map(({ name }) => name)).toEqual(['two'])
    expect((await directory.searchGroups({ offset: 0, limit: 0 })).total).toBe(1)
  })

  test('returns ids in the order of their names', async () => {
    const directory = await one()
    for (const login of ['zoe', 'Amy', 'bob']) await createUser(directory, user(login, {}, ['beta', 'Alpha', 'gamma']))
    const alice = await directory.lookupUserByLogin('amy')
    const ids = await Promise.all(
      (alice?.groups ?? []).map(async (name) => (await directory.lookupGroupByName(name))?.id),
    )
    expect(alice?.groups).toHaveLength(3)
    expect(alice?.groupIds).toEqual(ids)
    const group = await directory.lookupGroupByName('alpha')
    const members = await Promise.all(
      (group?.members ?? []).map(async (login) => (await directory.lookupUserByLogin(login))?.id),
    )
    expect(group?.members).toHaveLength(3)
    expect(group?.memberIds).toEqual(members)
  })

  test('searches groups by name and attribute, without their members', async () => {
    const directory = await one()
    await createUser(directory, user('alice', {}, ['plain']))
    await createGroup(directory, 'Special', { gidNumber: ['7'] })
    const names = async (attribute: string, value: string) =>
      (await directory.searchGroups({ filter: { kind: 'equal', attribute, value }, offset: 0, limit: 10 })).items
    expect(await names('name', 'PLAIN')).toMatchObject([{ name: 'plain', members: [] }])
    expect(await names('gidnumber', '7')).toMatchObject([{ name: 'Special' }])
    expect(await names('userID', 'alice')).toEqual([])
  })

  test('a user joins and leaves hundreds of groups in one call', async () => {
    const directory = await one()
    const groups = Array.from({ length: 300 }, (_, i) => `group${i}`)
    await createUser(directory, user('alice'))
    expect(await syncUser(directory, sync('alice', {}, { groups }))).toHaveLength(600)
    expect(await syncUser(directory, sync('alice', {}, { groups: ['group299'] }))).toHaveLength(299)
    expect((await directory.lookupUserByLogin('alice'))?.groups).toEqual(['group299'])
  })

  test('a change that expects a group happens only while the group has that name', async () => {
    const [directory] = await openTwice(await freshUrl())
    await createUser(directory, user('ada'))
    const { id } = await createGroup(directory, 'staff')
    await expect(syncUser(directory, join('ada', 'staff', 'another'))).rejects.toMatchObject({ code: mismatch })
    expect(texts(await syncUser(directory, join('ada', 'STAFF', id)))).toEqual(['group add groups=staff'])
    await updateGroup(directory, 'staff', { newName: 'people' })
    await expect(syncUser(directory, join('ada', 'staff', id))).rejects.toMatchObject({ code: mismatch })
    await deleteGroup(directory, 'people')
    await expect(syncUser(directory, join('ada', 'people', id))).rejects.toMatchObject({ code: mismatch })
    expect(await groupNames(directory)).toEqual([])
  })

  test('users who join while the group is renamed or deleted are in it or in none', async () => {
    const [first, second] = await openTwice(await freshUrl())
    const logins = Array.from({ length: 20 }, (_, i) => `user${i}`)
    for (const login of logins) await createUser(first, user(login))
    const { id } = await createGroup(first, 'old')
    const joins = (name: string) => logins.map((login) => syncUser(first, join(login, name, id)))
    const joined = await Promise.allSettled([...joins('old'), updateGroup(second, 'old', { newName: 'new' })])
    expect([mismatch]).toEqual(expect.arrayContaining([...codes(joined)]))
    expect(await groupNames(second)).toEqual(['new'])
    const left = await Promise.allSettled([...joins('new'), deleteGroup(second, 'new')])
    expect([mismatch]).toEqual(expect.arrayContaining([...codes(left)]))
    expect(await groupNames(second)).toEqual([])
    for (const login of logins) expect((await first.lookupUserByLogin(login))?.groups).toEqual([])
  })
})

describe.skipIf(postgresUrl() === '')('on PostgreSQL', () => {
  test('groups that a user leaves and joins are locked in one order, so that users who move both ways do not deadlock', async () => {
    const url = await migratedSchema()
    const directory = await openDirectory(url)
    for (const name of ['a', 'b']) await createGroup(directory, name)
    await createUser(directory, user('ada', {}, ['c', 'd']))
    const other = new pg.Client({ connectionString: url })
    await other.connect()
    onTestFinished(() => other.end())
    const lock = (keys: string) => other.query(`select from entries where key in (${keys}) for update nowait`)
    await other.query('begin')
    await lock("'a'")
    const moving = syncUser(directory, sync('ada', {}, { groups: ['a', 'b'] }))
    const waiting = 'select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))'
    await expect.poll(async () => (await other.query(waiting)).rowCount).toBe(1)
    expect((await lock("'b', 'c', 'd'")).rowCount).toBe(3)
    await other.query('commit')
    expect(await moving).toHaveLength(4)
  })
})
