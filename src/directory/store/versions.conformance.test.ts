import { expect, test } from 'vitest'
import type { UserDirectory } from '#identity/user-directory.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import {
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
import { codes, openDirectory, openTwice, texts } from '#testing/databases/user-directories.ts'

onEachDatabase('versions and names of a directory', (freshUrl) => {
  const open = async () => openTwice(await freshUrl())
  const one = async () => openDirectory(await freshUrl())

  test('renames a user together with other changes, and keeps its id and groups', async () => {
    const directory = await one()
    await createUser(directory, user('Alice', { mail: ['a'] }, ['staff']))
    const before = await directory.lookupUserByLogin('alice')
    const change = sync('ALICE', { mail: ['b'] }, { newUserID: 'Alicia' })
    expect(texts(await syncUser(directory, change))).toEqual([
      'entry replace userID=Alicia',
      'attribute replace mail=b',
    ])
    expect(await directory.lookupUserByLogin('alice')).toBeUndefined()
    const after = await directory.lookupUserByLogin('alicia')
    expect(after).toMatchObject({ id: before?.id, userID: 'Alicia', groups: ['staff'], version: '2' })
    expect(after?.attributes.toObject()).toEqual({ mail: ['b'] })
    expect((await directory.lookupGroupByName('staff'))?.members).toEqual(['Alicia'])
    const filter = { kind: 'equal', attribute: 'userID', value: 'ALICIA' } as const
    expect((await directory.searchUsers({ filter, offset: 0, limit: 1 })).total).toBe(1)
    await expect(syncUser(directory, change)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await syncUser(directory, sync('alicia', {}, { newUserID: 'Alicia' }))).toEqual([])
    expect((await directory.lookupUserByLogin('alicia'))?.version).toBe('2')
    await createUser(directory, user('alice'))
  })

  test('changes the letter case of a login', async () => {
    const directory = await one()
    await createUser(directory, user('alice'))
    expect(texts(await syncUser(directory, sync('alice', {}, { newUserID: 'ALICE' })))).toEqual([
      'entry replace userID=ALICE',
    ])
    expect((await directory.lookupUserByLogin('alice'))?.userID).toBe('ALICE')
    expect((await directory.searchUsers({ offset: 0, limit: 0 })).total).toBe(1)
  })

  test('rejects a new login that is taken or invalid, and changes nothing', async () => {
    const directory = await one()
    await createUser(directory, user('alice', { a: ['1'] }))
    await createUser(directory, user('Bob'))
    const change = (newUserID: string) => sync('alice', { a: ['2'] }, { groups: ['new'], newUserID })
    const refused = syncUser(directory, change('BOB'))
    await expect(refused).rejects.toMatchObject({ code: 'CONFLICT', keyword: 'uniqueness' })
    for (const newUserID of ['', 'a\0', 'a\ud800', 'x'.repeat(513)]) {
      const wrong = syncUser(directory, change(newUserID))
      await expect(wrong).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
    const found = await directory.lookupUserByLogin('alice')
    expect([found?.version, found?.attributes.first('a'), found?.groups]).toEqual(['1', '1', []])
    expect(await directory.lookupGroupByName('new')).toBeUndefined()
  })

  test('compares a new login that is a number as a number', async () => {
    const directory = await one()
    await createUser(directory, user('9'))
    await syncUser(directory, sync('9', {}, { newUserID: '100' }))
    const filter = { kind: 'greater', attribute: 'userID', value: '20' } as const
    expect((await directory.searchUsers({ filter, offset: 0, limit: 1 })).total).toBe(1)
  })

  test('renames a group, which keeps its id and members; their versions stay', async () => {
    const directory = await one()
    await createUser(directory, user('alice', {}, ['Staff']))
    const [group, member] = [await directory.lookupGroupByName('staff'), await directory.lookupUserByLogin('alice')]
    const update = { newName: 'Crew', attributes: { description: ['All'] } }
    expect(texts(await updateGroup(directory, 'STAFF', update))).toEqual([
      'entry replace name=Crew',
      'attribute add description=All',
    ])
    expect(await directory.lookupGroupByName('staff')).toBeUndefined()
    const after = await directory.lookupGroupByName('crew')
    expect(after).toMatchObject({ id: group?.id, name: 'Crew', description: 'All', members: ['alice'] })
    expect(after?.version).not.toBe(group?.version)
    expect(await directory.lookupUserByLogin('alice')).toMatchObject({ groups: ['Crew'], version: member?.version })
    await expect(updateGroup(directory, 'staff', update)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(updateGroup(directory, 'a\0', {})).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await updateGroup(directory, 'crew', update)).toEqual([])
    expect((await directory.lookupGroupByName('crew'))?.version).toBe(after?.version)
    expect(texts(await updateGroup(directory, 'crew', { newName: 'CREW', attributes: { x: [] } }))).toEqual([
      'entry replace name=CREW',
    ])
    const cleared = await updateGroup(directory, 'crew', { attributes: { description: [] } })
    expect(texts(cleared)).toEqual(['attribute delete description=All'])
  })

  test('rejects a list of groups that was read before a group was renamed', async () => {
    const directory = await one()
    await createUser(directory, user('alice', {}, ['old', 'staff']))
    const { version: expectedVersion = '' } = (await directory.lookupUserByLogin('alice')) ?? {}
    await updateGroup(directory, 'old', { newName: 'between' })
    await updateGroup(directory, 'between', { newName: 'new' })
    for (const name of ['OLD', 'between']) {
      const stale = syncUser(directory, sync('alice', {}, { groups: [name, 'staff', 'other'], expectedVersion }))
      await expect(stale).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    }
    await createGroup(directory, 'old')
    const stale = syncUser(directory, sync('alice', {}, { groups: ['old', 'staff'], expectedVersion }))
    await expect(stale).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect((await directory.lookupUserByLogin('alice'))?.groups).toEqual(['new', 'staff'])
    await syncUser(directory, sync('alice', {}, { groups: ['new', 'staff', 'between'], expectedVersion }))
    expect((await directory.lookupUserByLogin('alice'))?.groups).toEqual(['between', 'new', 'staff'])
    await syncUser(directory, sync('alice', {}, { groups: ['old'] }))
    expect((await directory.lookupUserByLogin('alice'))?.groups).toEqual(['old'])
  })

  test('rejects a new group name that is taken or invalid, and changes nothing', async () => {
    const directory = await one()
    await createGroup(directory, 'staff', { a: ['1'] })
    await createGroup(directory, 'Crew')
    const attributes = { a: ['2'] }
    await expect(updateGroup(directory, 'staff', { newName: 'crew', attributes })).rejects.toMatchObject({
      code: 'CONFLICT',
      keyword: 'uniqueness',
    })
    for (const newName of ['', 'a\0', 'x'.repeat(513)]) {
      await expect(updateGroup(directory, 'staff', { newName, attributes })).rejects.toMatchObject({
        code: 'BAD_REQUEST',
      })
    }
    await expect(updateGroup(directory, 'staff', { attributes: { a: ['\0'] } })).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
    expect(await directory.lookupGroupByName('staff')).toMatchObject({ version: '1', name: 'staff' })
  })

  test('rejects a change that expects another version', async () => {
    const directory = await one()
    await createUser(directory, user('alice', {}, ['staff']))
    const stale = { expectedVersion: '99' }
    const mismatch = { code: 'VERSION_MISMATCH' }
    await expect(syncUser(directory, sync('alice', {}, { ...stale, newUserID: 'bob' }))).rejects.toMatchObject(mismatch)
    await expect(deleteUser(directory, 'alice', stale)).rejects.toMatchObject(mismatch)
    await expect(updateGroup(directory, 'staff', { ...stale, newName: 'x' })).rejects.toMatchObject(mismatch)
    await expect(deleteGroup(directory, 'staff', stale)).rejects.toMatchObject(mismatch)
    expect(await directory.lookupUserByLogin('alice')).toMatchObject({ groups: ['staff'], version: '1' })
    expect(await deleteUser(directory, 'unknown', stale)).toEqual([])
    expect(await deleteGroup(directory, 'none', stale)).toEqual([])
    const [version, groupVersion] = ['1', (await directory.lookupGroupByName('staff'))?.version ?? '']
    expect(await deleteGroup(directory, 'staff', { expectedVersion: groupVersion })).toHaveLength(1)
    await expect(deleteUser(directory, 'alice', { expectedVersion: version })).rejects.toMatchObject(mismatch)
    expect(await deleteUser(directory, 'alice', { expectedVersion: '2' })).toHaveLength(1)
  })

  test('an update that expects a version gives the group a new one, even without changes', async () => {
    const directory = await one()
    await createGroup(directory, 'staff')
    expect(await updateGroup(directory, 'staff', {})).toEqual([])
    expect((await directory.lookupGroupByName('staff'))?.version).toBe('1')
    expect(await updateGroup(directory, 'staff', { expectedVersion: '1' })).toEqual([])
    await expect(updateGroup(directory, 'staff', { expectedVersion: '1' })).rejects.toMatchObject({
      code: 'VERSION_MISMATCH',
    })
  })

  test('every change of membership gives the group a new version', async () => {
    const directory = await one()
    await createUser(directory, user('alice'))
    const version = async () => Number((await directory.lookupGroupByName('staff'))?.version)
    await createGroup(directory, 'staff')
    const seen = [await version()]
    for (const change of [
      () => syncUser(directory, sync('alice', {}, { groups: ['staff'] })),
      () => syncUser(directory, sync('alice', {}, { groups: [] })),
      () => createUser(directory, user('bob', {}, ['staff'])),
      () => joinGroup(directory, 'staff', ['alice']),
      () => deleteUser(directory, 'alice'),
    ]) {
      await change()
      seen.push(await version())
    }
    expect(seen).toEqual([1, 2, 3, 4, 5, 6])
  })

  describe20('syncs of a user', async ([first]) => {
    await createUser(first, user('alice'))
    return (directory, i) => syncUser(directory, sync('alice', { a: [`${i}`] }, { expectedVersion: '1' }))
  })

  describe20('new logins of a user', async ([first]) => {
    await createUser(first, user('alice'))
    return (directory, i) => syncUser(directory, sync('alice', {}, { newUserID: `alice${i}`, expectedVersion: '1' }))
  })

  describe20('updates of a group', async ([first]) => {
    await createGroup(first, 'staff')
    return (directory, i) => updateGroup(directory, 'staff', { attributes: { a: [`${i}`] }, expectedVersion: '1' })
  })

  describe20('comparisons of a group', async ([first]) => {
    await createGroup(first, 'staff')
    return async (directory) => {
      await updateGroup(directory, 'staff', { expectedVersion: '1' })
      return ['won']
    }
  })

  describe20('deletions of a user', async ([first]) => {
    await createUser(first, user('alice'))
    return (directory) => deleteUser(directory, 'alice', { expectedVersion: '1' })
  })

  describe20('deletions of a group', async ([first]) => {
    await createGroup(first, 'staff')
    return (directory) => deleteGroup(directory, 'staff', { expectedVersion: '1' })
  })

  describe20('new logins of different users', async ([first]) => {
    for (let i = 0; i < 20; i++) await createUser(first, user(`user${i}`))
    return (directory, i) => syncUser(directory, sync(`user${i}`, {}, { newUserID: 'wanted' }))
  })

  function describe20(
    what: string,
    prepare: (
      directories: readonly [UserDirectory, UserDirectory],
    ) => Promise<(directory: UserDirectory, i: number) => Promise<readonly unknown[]>>,
  ): void {
    test(`one of twenty concurrent ${what}, by two connections, succeeds`, async () => {
      const directories = await open()
      const change = await prepare(directories)
      const results = await Promise.allSettled(
        Array.from({ length: 20 }, (_, i) => change(directories[i % 2 === 0 ? 0 : 1], i)),
      )
      const won = results.filter((result) => result.status === 'fulfilled' && result.value.length > 0)
      expect(won).toHaveLength(1)
      for (const code of codes(results)) expect(['VERSION_MISMATCH', 'CONFLICT', 'NOT_FOUND']).toContain(code)
    })
  }

  test('applies fifty concurrent changes of membership, by two connections', async () => {
    const directories = await open()
    const [first] = directories
    const logins = Array.from({ length: 50 }, (_, i) => `user${String(i).padStart(2, '0')}`)
    for (const [i, login] of logins.entries()) await createUser(first, user(login, {}, i % 2 === 0 ? ['staff'] : []))
    const before = Number((await first.lookupGroupByName('staff'))?.version)
    await Promise.all(
      logins.map((login, i) => {
        const directory = directories[i % 4 < 2 ? 0 : 1]
        return syncUser(directory, sync(login, {}, { groups: i % 2 === 0 ? [] : ['staff'] }))
      }),
    )
    const group = await first.lookupGroupByName('staff')
    expect(group?.members).toEqual(logins.filter((_, i) => i % 2 === 1))
    expect(Number(group?.version)).toBe(before + 50)
  })

  test('memberships agree on both sides when groups are renamed and deleted meanwhile', async () => {
    const directories = await open()
    const [first, second] = directories
    const logins = Array.from({ length: 20 }, (_, i) => `user${i}`)
    for (const login of logins) await createUser(first, user(login, {}, ['old']))
    await Promise.allSettled([
      ...logins.map((login) => leaveGroup(second, 'old', [login])),
      updateGroup(first, 'old', { newName: 'new' }),
      ...logins.map((login) => syncUser(first, sync(login, {}, { groups: ['other'] }))),
      deleteGroup(second, 'other'),
    ])
    for (const login of logins) {
      for (const name of (await first.lookupUserByLogin(login))?.groups ?? []) {
        expect((await second.lookupGroupByName(name))?.members).toContain(login)
      }
    }
    const { items, total } = await first.searchGroups({ offset: 0, limit: 10 })
    expect(total).toBe(items.length)
    expect((await first.searchGroups({ offset: 0, limit: 0 })).total).toBe(items.length)
  })
})
