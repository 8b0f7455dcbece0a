import { expect, test } from 'vitest'
import type { UserDirectory } from '#identity/user-directory.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { codes, openDirectory, openTwice, sync, texts, user } from '#testing/databases/user-directories.ts'

onEachDatabase('versions and names of a directory', (freshUrl) => {
  const open = async () => openTwice(await freshUrl())
  const one = async () => openDirectory(await freshUrl())

  test('renames a user together with other changes, and keeps its id and groups', async () => {
    const directory = await one()
    await directory.create(user('Alice', { mail: ['a'] }, ['staff']))
    const before = await directory.findByLogin('alice')
    const change = sync('ALICE', { mail: ['b'] }, { newUserID: 'Alicia' })
    expect(texts(await directory.sync(change))).toEqual(['entry replace userID=Alicia', 'attribute replace mail=b'])
    expect(await directory.findByLogin('alice')).toBeUndefined()
    const after = await directory.findByLogin('alicia')
    expect(after).toMatchObject({ id: before?.id, userID: 'Alicia', groups: ['staff'], version: '2' })
    expect(after?.attributes.toObject()).toEqual({ mail: ['b'] })
    expect((await directory.findGroupByName('staff'))?.members).toEqual(['Alicia'])
    const filter = { kind: 'equal', attribute: 'userID', value: 'ALICIA' } as const
    expect((await directory.searchUsers({ filter, offset: 0, limit: 1 })).total).toBe(1)
    await expect(directory.sync(change)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await directory.sync(sync('alicia', {}, { newUserID: 'Alicia' }))).toEqual([])
    expect((await directory.findByLogin('alicia'))?.version).toBe('2')
    await directory.create(user('alice'))
  })

  test('changes the letter case of a login', async () => {
    const directory = await one()
    await directory.create(user('alice'))
    expect(texts(await directory.sync(sync('alice', {}, { newUserID: 'ALICE' })))).toEqual([
      'entry replace userID=ALICE',
    ])
    expect((await directory.findByLogin('alice'))?.userID).toBe('ALICE')
    expect((await directory.searchUsers({ offset: 0, limit: 0 })).total).toBe(1)
  })

  test('rejects a new login that is taken or invalid, and changes nothing', async () => {
    const directory = await one()
    await directory.create(user('alice', { a: ['1'] }))
    await directory.create(user('Bob'))
    const change = (newUserID: string) => sync('alice', { a: ['2'] }, { groups: ['new'], newUserID })
    const refused = directory.sync(change('BOB'))
    await expect(refused).rejects.toMatchObject({ code: 'CONFLICT', keyword: 'uniqueness' })
    for (const newUserID of ['', 'a\0', 'a\ud800', 'x'.repeat(513)]) {
      const wrong = directory.sync(change(newUserID))
      await expect(wrong).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
    const found = await directory.findByLogin('alice')
    expect([found?.version, found?.attributes.first('a'), found?.groups]).toEqual(['1', '1', []])
    expect(await directory.findGroupByName('new')).toBeUndefined()
  })

  test('compares a new login that is a number as a number', async () => {
    const directory = await one()
    await directory.create(user('9'))
    await directory.sync(sync('9', {}, { newUserID: '100' }))
    const filter = { kind: 'greater', attribute: 'userID', value: '20' } as const
    expect((await directory.searchUsers({ filter, offset: 0, limit: 1 })).total).toBe(1)
  })

  test('renames a group, which keeps its id and members; their versions stay', async () => {
    const directory = await one()
    await directory.create(user('alice', {}, ['Staff']))
    const [group, member] = [await directory.findGroupByName('staff'), await directory.findByLogin('alice')]
    const update = { newName: 'Crew', attributes: { description: ['All'] } }
    expect(texts(await directory.updateGroup('STAFF', update))).toEqual([
      'entry replace name=Crew',
      'attribute add description=All',
    ])
    expect(await directory.findGroupByName('staff')).toBeUndefined()
    const after = await directory.findGroupByName('crew')
    expect(after).toMatchObject({ id: group?.id, name: 'Crew', description: 'All', members: ['alice'] })
    expect(after?.version).not.toBe(group?.version)
    expect(await directory.findByLogin('alice')).toMatchObject({ groups: ['Crew'], version: member?.version })
    await expect(directory.updateGroup('staff', update)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(directory.updateGroup('a\0', {})).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await directory.updateGroup('crew', update)).toEqual([])
    expect((await directory.findGroupByName('crew'))?.version).toBe(after?.version)
    expect(texts(await directory.updateGroup('crew', { newName: 'CREW', attributes: { x: [] } }))).toEqual([
      'entry replace name=CREW',
    ])
    const cleared = await directory.updateGroup('crew', { attributes: { description: [] } })
    expect(texts(cleared)).toEqual(['attribute delete description=All'])
  })

  test('rejects a list of groups that was read before a group was renamed', async () => {
    const directory = await one()
    await directory.create(user('alice', {}, ['old', 'staff']))
    const { version: expectedVersion = '' } = (await directory.findByLogin('alice')) ?? {}
    await directory.updateGroup('old', { newName: 'between' })
    await directory.updateGroup('between', { newName: 'new' })
    for (const name of ['OLD', 'between']) {
      const stale = directory.sync(sync('alice', {}, { groups: [name, 'staff', 'other'], expectedVersion }))
      await expect(stale).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    }
    await directory.createGroup('old', new Map())
    const stale = directory.sync(sync('alice', {}, { groups: ['old', 'staff'], expectedVersion }))
    await expect(stale).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect((await directory.findByLogin('alice'))?.groups).toEqual(['new', 'staff'])
    await directory.sync(sync('alice', {}, { groups: ['new', 'staff', 'between'], expectedVersion }))
    expect((await directory.findByLogin('alice'))?.groups).toEqual(['between', 'new', 'staff'])
    await directory.sync(sync('alice', {}, { groups: ['old'] }))
    expect((await directory.findByLogin('alice'))?.groups).toEqual(['old'])
  })

  test('rejects a new group name that is taken or invalid, and changes nothing', async () => {
    const directory = await one()
    await directory.createGroup('staff', new Map([['a', ['1']]]))
    await directory.createGroup('Crew', new Map())
    const attributes = { a: ['2'] }
    await expect(directory.updateGroup('staff', { newName: 'crew', attributes })).rejects.toMatchObject({
      code: 'CONFLICT',
      keyword: 'uniqueness',
    })
    for (const newName of ['', 'a\0', 'x'.repeat(513)]) {
      await expect(directory.updateGroup('staff', { newName, attributes })).rejects.toMatchObject({
        code: 'BAD_REQUEST',
      })
    }
    await expect(directory.updateGroup('staff', { attributes: { a: ['\0'] } })).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
    expect(await directory.findGroupByName('staff')).toMatchObject({ version: '1', name: 'staff' })
  })

  test('rejects a change that expects another version', async () => {
    const directory = await one()
    await directory.create(user('alice', {}, ['staff']))
    const stale = { expectedVersion: '99' }
    const mismatch = { code: 'VERSION_MISMATCH' }
    await expect(directory.sync(sync('alice', {}, { ...stale, newUserID: 'bob' }))).rejects.toMatchObject(mismatch)
    await expect(directory.delete('alice', stale)).rejects.toMatchObject(mismatch)
    await expect(directory.updateGroup('staff', { ...stale, newName: 'x' })).rejects.toMatchObject(mismatch)
    await expect(directory.deleteGroup('staff', stale)).rejects.toMatchObject(mismatch)
    expect(await directory.findByLogin('alice')).toMatchObject({ groups: ['staff'], version: '1' })
    expect(await directory.delete('unknown', stale)).toEqual([])
    expect(await directory.deleteGroup('none', stale)).toBe(false)
    const [version, groupVersion] = ['1', (await directory.findGroupByName('staff'))?.version ?? '']
    expect(await directory.deleteGroup('staff', { expectedVersion: groupVersion })).toBe(true)
    await expect(directory.delete('alice', { expectedVersion: version })).rejects.toMatchObject(mismatch)
    expect(await directory.delete('alice', { expectedVersion: '2' })).toHaveLength(1)
  })

  test('an update that expects a version gives the group a new one, even without changes', async () => {
    const directory = await one()
    await directory.createGroup('staff', new Map())
    expect(await directory.updateGroup('staff', {})).toEqual([])
    expect((await directory.findGroupByName('staff'))?.version).toBe('1')
    expect(await directory.updateGroup('staff', { expectedVersion: '1' })).toEqual([])
    await expect(directory.updateGroup('staff', { expectedVersion: '1' })).rejects.toMatchObject({
      code: 'VERSION_MISMATCH',
    })
  })

  test('every change of membership gives the group a new version', async () => {
    const directory = await one()
    await directory.create(user('alice'))
    const version = async () => Number((await directory.findGroupByName('staff'))?.version)
    await directory.createGroup('staff', new Map())
    const seen = [await version()]
    for (const change of [
      () => directory.sync(sync('alice', {}, { groups: ['staff'] })),
      () => directory.sync(sync('alice', {}, { groups: [] })),
      () => directory.create(user('bob', {}, ['staff'])),
      () => directory.changeMembers('staff', { add: ['alice'], remove: ['bob'] }),
      () => directory.delete('alice'),
    ]) {
      await change()
      seen.push(await version())
    }
    expect(seen).toEqual([1, 2, 3, 4, 5, 6])
  })

  describe20('syncs of a user', async ([first]) => {
    await first.create(user('alice'))
    return (directory, i) => directory.sync(sync('alice', { a: [`${i}`] }, { expectedVersion: '1' }))
  })

  describe20('new logins of a user', async ([first]) => {
    await first.create(user('alice'))
    return (directory, i) => directory.sync(sync('alice', {}, { newUserID: `alice${i}`, expectedVersion: '1' }))
  })

  describe20('updates of a group', async ([first]) => {
    await first.createGroup('staff', new Map())
    return (directory, i) => directory.updateGroup('staff', { attributes: { a: [`${i}`] }, expectedVersion: '1' })
  })

  describe20('comparisons of a group', async ([first]) => {
    await first.createGroup('staff', new Map())
    return async (directory) => {
      await directory.updateGroup('staff', { expectedVersion: '1' })
      return ['won']
    }
  })

  describe20('deletions of a user', async ([first]) => {
    await first.create(user('alice'))
    return (directory) => directory.delete('alice', { expectedVersion: '1' })
  })

  describe20('deletions of a group', async ([first]) => {
    await first.createGroup('staff', new Map())
    return async (directory) => ((await directory.deleteGroup('staff', { expectedVersion: '1' })) ? ['won'] : [])
  })

  describe20('new logins of different users', async ([first]) => {
    for (let i = 0; i < 20; i++) await first.create(user(`user${i}`))
    return (directory, i) => directory.sync(sync(`user${i}`, {}, { newUserID: 'wanted' }))
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
    for (const [i, login] of logins.entries()) await first.create(user(login, {}, i % 2 === 0 ? ['staff'] : []))
    const before = Number((await first.findGroupByName('staff'))?.version)
    await Promise.all(
      logins.map((login, i) => {
        const directory = directories[i % 4 < 2 ? 0 : 1]
        const [add, remove] = i % 2 === 0 ? [[], [login]] : [[login], []]
        if (i % 3 === 0) return directory.changeMembers('staff', { add, remove })
        return directory.sync(sync(login, {}, { groups: i % 2 === 0 ? [] : ['staff'] }))
      }),
    )
    const group = await first.findGroupByName('staff')
    expect(group?.members).toEqual(logins.filter((_, i) => i % 2 === 1))
    expect(Number(group?.version)).toBe(before + 50)
  })

  test('memberships agree on both sides when groups are renamed and deleted meanwhile', async () => {
    const directories = await open()
    const [first, second] = directories
    const logins = Array.from({ length: 20 }, (_, i) => `user${i}`)
    for (const login of logins) await first.create(user(login, {}, ['old']))
    await Promise.allSettled([
      ...logins.map((login) => second.changeMembers('old', { add: [], remove: [login] })),
      first.updateGroup('old', { newName: 'new' }),
      ...logins.map((login) => first.sync(sync(login, {}, { groups: ['other'] }))),
      second.deleteGroup('other'),
    ])
    for (const login of logins) {
      for (const name of (await first.findByLogin(login))?.groups ?? []) {
        expect((await second.findGroupByName(name))?.members).toContain(login)
      }
    }
    const { items, total } = await first.searchGroups({ offset: 0, limit: 10 })
    expect(total).toBe(items.length)
    expect((await first.searchGroups({ offset: 0, limit: 0 })).total).toBe(items.length)
  })
})
