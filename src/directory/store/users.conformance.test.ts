import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { directoryLimits } from '#identity/user-directory.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { createUser, deleteUser, joinGroup, sync, syncUser, user } from '#testing/databases/directory-writes.ts'
import { openDirectories, openDirectory, texts } from '#testing/databases/user-directories.ts'

onEachDatabase('users of a directory', (freshUrl) => {
  const one = async () => openDirectory(await freshUrl())

  test('finds a user by login and id as it was created', async () => {
    const directory = await one()
    const changes = await createUser(
      directory,
      user('Alice', { mail: ['a@x.org', 'A@x.org'], SN: ['Smith'] }, ['Admins', 'staff']),
    )
    expect(texts(changes)).toEqual([
      'entry add userID=Alice',
      'attribute add mail=a@x.org',
      'attribute add mail=A@x.org',
      'attribute add SN=Smith',
      'entry add name=Admins',
      'entry add name=staff',
      'group add groups=Admins',
      'group add groups=staff',
    ])
    const found = await directory.lookupUserByLogin('aLICE')
    expect(found).toMatchObject({ userID: 'Alice', groups: ['Admins', 'staff'] })
    expect(found?.attributes.toObject()).toEqual({ mail: ['a@x.org', 'A@x.org'], SN: ['Smith'] })
    expect(found?.created).toBeInstanceOf(Date)
    expect(await directory.lookupUserById(found?.id ?? '')).toEqual(found)
    expect(await directory.lookupUserById('unknown')).toBeUndefined()
    expect(await directory.lookupUserByLogin('unknown')).toBeUndefined()
  })

  test('rejects a login that exists in another letter case, and creates nothing', async () => {
    const directory = await one()
    await createUser(directory, user('Straße'))
    await expect(createUser(directory, user('STRAßE', { mail: ['x'] }, ['new']))).rejects.toMatchObject({
      code: 'CONFLICT',
      keyword: 'uniqueness',
    })
    expect(await directory.lookupGroupByName('new')).toBeUndefined()
    expect((await directory.searchUsers({ offset: 0, limit: 10 })).total).toBe(1)
    expect((await directory.searchUsers({ offset: 0, limit: 0 })).total).toBe(1)
  })

  test('creates one user when many create the same login at the same time', async () => {
    const directory = await one()
    const results = await Promise.allSettled(Array.from({ length: 10 }, () => createUser(directory, user('alice'))))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'CONFLICT' })
    }
    expect((await directory.searchUsers({ offset: 0, limit: 0 })).total).toBe(1)
  })

  test('a create that fails does not undo others at the same time', async () => {
    const directory = await one()
    await createUser(directory, user('user7'))
    const results = await Promise.allSettled(
      Array.from({ length: 50 }, (_, i) => createUser(directory, user(`user${i}`, { n: [`${i}`] }))),
    )
    expect(results.flatMap(({ status }, i) => (status === 'rejected' ? [i] : []))).toEqual([7])
    expect((await directory.searchUsers({ offset: 0, limit: 0 })).total).toBe(50)
    expect((await directory.lookupUserByLogin('user49'))?.attributes.first('n')).toBe('49')
  })

  test('sync returns exactly what it changed, and nothing the second time', async () => {
    const directory = await one()
    await createUser(directory, user('alice', { mail: ['old@x.org'], phone: ['1', '2'], title: ['Dr'], keep: ['k'] }))
    const before = await directory.lookupUserByLogin('alice')
    const wanted = sync('ALICE', { Mail: ['new@x.org'], phone: ['2', '3'], title: [], city: ['Bern'] })
    expect(texts(await syncUser(directory, wanted))).toEqual([
      'attribute replace mail=new@x.org',
      'attribute add phone=3',
      'attribute delete phone=1',
      'attribute delete title=Dr',
      'attribute add city=Bern',
    ])
    const after = await directory.lookupUserByLogin('alice')
    expect(after?.attributes.toObject()).toEqual({
      mail: ['new@x.org'],
      phone: ['2', '3'],
      city: ['Bern'],
      keep: ['k'],
    })
    expect(after?.userID).toBe('alice')
    expect(after?.version).not.toBe(before?.version)
    expect(await syncUser(directory, wanted)).toEqual([])
    expect((await directory.lookupUserByLogin('alice'))?.version).toBe(after?.version)
  })

  test('sync changes the letter case and the order of values', async () => {
    const directory = await one()
    await createUser(directory, user('alice', { sn: ['smith'], list: ['a', 'b'] }))
    const changes = await syncUser(directory, sync('alice', { sn: ['Smith'], list: ['b', 'a'] }))
    expect(texts(changes)).toEqual([
      'attribute replace sn=Smith',
      'attribute replace list=b',
      'attribute replace list=a',
    ])
    expect((await directory.lookupUserByLogin('alice'))?.attributes.toObject()).toEqual({
      sn: ['Smith'],
      list: ['b', 'a'],
    })
  })

  test('addOnly removes nothing', async () => {
    const directory = await one()
    await createUser(directory, user('alice', { mail: ['a'], phone: ['1'] }, ['one']))
    const changes = await syncUser(
      directory,
      sync('alice', { mail: ['b', 'a'], phone: [] }, { addOnly: true, groups: ['two'] }),
    )
    expect(texts(changes)).toEqual(['attribute add mail=b', 'entry add name=two', 'group add groups=two'])
    const found = await directory.lookupUserByLogin('alice')
    expect(found?.attributes.toObject()).toEqual({ mail: ['a', 'b'], phone: ['1'] })
    expect(found?.groups).toEqual(['one', 'two'])
  })

  test('sync replaces the groups, or keeps them when none are given', async () => {
    const directory = await one()
    await createUser(directory, user('alice', {}, ['one', 'two']))
    expect(await syncUser(directory, sync('alice', {}))).toEqual([])
    const changes = await syncUser(directory, sync('alice', {}, { groups: ['TWO', 'three', 'Three'] }))
    expect(texts(changes)).toEqual(['group delete groups=one', 'entry add name=three', 'group add groups=three'])
    expect((await directory.lookupUserByLogin('alice'))?.groups).toEqual(['three', 'two'])
    expect((await directory.lookupGroupByName('one'))?.members).toEqual([])
  })

  test('sync rejects an unknown user and another version', async () => {
    const directory = await one()
    await expect(syncUser(directory, sync('ghost', { a: ['1'] }))).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(syncUser(directory, sync('gh\0st', { a: ['1'] }))).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await createUser(directory, user('alice', { a: ['1'] }))
    const stale = sync('alice', { a: ['2'] }, { expectedVersion: 'other' })
    await expect(syncUser(directory, stale)).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect((await directory.lookupUserByLogin('alice'))?.attributes.first('a')).toBe('1')
  })

  test('one of many changes that expect the same version succeeds', async () => {
    const directory = await one()
    await createUser(directory, user('alice', { a: ['0'] }))
    const expectedVersion = (await directory.lookupUserByLogin('alice'))?.version ?? ''
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        syncUser(directory, sync('alice', { a: [`${i + 1}`] }, { expectedVersion })),
      ),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  test('applies fifty parallel changes of one user', async () => {
    const directory = await one()
    await createUser(directory, user('alice'))
    await Promise.all(
      Array.from({ length: 50 }, (_, i) => syncUser(directory, sync('alice', { list: [`v${i}`] }, { addOnly: true }))),
    )
    const found = await directory.lookupUserByLogin('alice')
    expect(found?.attributes.values('list').toSorted()).toEqual(Array.from({ length: 50 }, (_, i) => `v${i}`).sort())
    expect(found?.version).toBe('51')
  })

  test('deletes a user with its values and memberships, once', async () => {
    const directory = await one()
    await createUser(directory, user('Alice', { mail: ['a@x.org'] }, ['one']))
    const id = (await directory.lookupUserByLogin('alice'))?.id
    expect(texts(await deleteUser(directory, 'ALICE'))).toEqual(['entry delete userID=Alice'])
    expect(await deleteUser(directory, 'alice')).toEqual([])
    expect(await deleteUser(directory, 'al\0ice')).toEqual([])
    expect(await directory.lookupUserByLogin('alice')).toBeUndefined()
    expect((await directory.lookupGroupByName('one'))?.members).toEqual([])
    const filter = { kind: 'equal', attribute: 'mail', value: 'a@x.org' } as const
    expect(await directory.searchUsers({ filter, offset: 0, limit: 10 })).toEqual({ items: [], total: 0 })
    expect((await directory.searchUsers({ offset: 0, limit: 10 })).total).toBe(0)
    await createUser(directory, user('alice'))
    expect((await directory.lookupUserByLogin('alice'))?.id).not.toBe(id)
  })

  test('separates the directories of one database', async () => {
    const named = await openDirectories(await freshUrl())
    const [first, second] = [named('one'), named('two')]
    await createUser(first, user('alice', { mail: ['a'] }, ['staff']))
    const id = (await first.lookupUserByLogin('alice'))?.id ?? ''
    expect(await second.lookupUserByLogin('alice')).toBeUndefined()
    expect(await second.lookupUserById(id)).toBeUndefined()
    expect(await second.lookupGroupByName('staff')).toBeUndefined()
    expect((await second.searchUsers({ offset: 0, limit: 1 })).total).toBe(0)
    const filter = { kind: 'present', attribute: 'mail' } as const
    expect((await second.searchUsers({ filter, offset: 0, limit: 1 })).total).toBe(0)
    const own = { kind: 'equal', attribute: 'id', value: id } as const
    expect((await second.searchUsers({ filter: own, offset: 0, limit: 1 })).total).toBe(0)
    await createUser(second, user('alice'))
    await joinGroup(second, 'staff', ['alice'])
    expect((await first.lookupGroupByName('staff'))?.members).toEqual(['alice'])
    expect((await second.lookupGroupByName('staff'))?.id).not.toBe((await first.lookupGroupByName('staff'))?.id)
  })

  test('returns pages in the order of creation, each with the total', async () => {
    const directory = await one()
    for (let i = 0; i < 25; i++)
      await createUser(directory, user(`user${(i * 7) % 25}`, { even: [String(i % 2 === 0)] }))
    const logins = async (offset: number, limit: number, even?: string) => {
      const filter = even === undefined ? {} : { filter: { kind: 'equal', attribute: 'even', value: even } as const }
      const { items, total } = await directory.searchUsers({ ...filter, offset, limit })
      return [total, ...items.map(({ userID }) => userID)]
    }
    expect(await logins(0, 3)).toEqual([25, 'user0', 'user7', 'user14'])
    expect(await logins(24, 10)).toEqual([25, 'user18'])
    expect(await logins(30, 10)).toEqual([25])
    expect(await logins(0, 0)).toEqual([25])
    expect(await logins(0, 2, 'TRUE')).toEqual([13, 'user0', 'user14'])
    expect(await logins(12, 2, 'true')).toEqual([13, 'user18'])
    expect(await logins(13, 2, 'true')).toEqual([13])
    expect(await logins(0, 2, 'maybe')).toEqual([0])
    for (const page of [
      { offset: -1, limit: 1 },
      { offset: 0, limit: -1 },
      { offset: 0.5, limit: 1 },
      { offset: 0, limit: Number.NaN },
    ]) {
      await expect(directory.searchUsers(page)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
  })

  test.each([
    ['a NUL character in a login', user('a\0b')],
    ['half a surrogate pair in a login', user('a\ud83d')],
    ['an empty login', user('')],
    ['a login that is too long', user('a'.repeat(directoryLimits.nameBytes + 1))],
    ['a NUL character in a value', user('a', { mail: ['x\0'] })],
    ['half a surrogate pair in a value', user('a', { mail: ['\udc00'] })],
    ['a NUL character in a name', user('a', { 'm\0': ['x'] })],
    ['a value that is too long', user('a', { mail: ['é'.repeat(directoryLimits.valueBytes / 2 + 1)] })],
    ['too many values', user('a', { mail: Array.from({ length: directoryLimits.valuesPerAttribute + 1 }, String) })],
    [
      'too many attributes',
      user('a', Object.fromEntries(Array.from({ length: directoryLimits.attributes + 1 }, (_, i) => [`a${i}`, ['x']]))),
    ],
    ['a group without a name', user('a', {}, [''])],
    ['a NUL character in a group name', user('a', {}, ['\0'])],
  ])('%s is a bad request', async (_, wrong) => {
    const directory = await one()
    await expect(createUser(directory, wrong)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect((await directory.searchUsers({ offset: 0, limit: 0 })).total).toBe(0)
  })

  test('stores and finds values just within the limits', async () => {
    const directory = await one()
    const long = 'Ä'.repeat(directoryLimits.valueBytes / 2)
    const many = Array.from({ length: directoryLimits.valuesPerAttribute }, (_, i) => `value ${i}`)
    const login = 'L'.repeat(directoryLimits.nameBytes)
    await createUser(
      directory,
      user(login, { long: [long], many, odd: ['%_\\\'";--', '\u{1f600}', 'line\nbreak', ''] }),
    )
    const found = await directory.lookupUserByLogin(login.toLowerCase())
    expect(found?.attributes.values('long')).toEqual([long])
    expect(found?.attributes.values('many')).toEqual(many)
    expect(found?.attributes.values('odd')).toEqual(['%_\\\'";--', '\u{1f600}', 'line\nbreak', ''])
    const total = async (value: string) =>
      (await directory.searchUsers({ filter: { kind: 'equal', attribute: 'long', value }, offset: 0, limit: 1 })).total
    expect(await total(long.toLowerCase())).toBe(1)
    expect(await total(long.slice(1))).toBe(0)
  })

  test('applies the limits to values that are added later', async () => {
    const directory = await one()
    await createUser(directory, user('a', { list: Array.from({ length: directoryLimits.valuesPerAttribute }, String) }))
    await expect(syncUser(directory, sync('a', { list: ['more'] }, { addOnly: true }))).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
    expect((await directory.lookupUserByLogin('a'))?.version).toBe('1')
  })

  test('accepts property names of JavaScript as attribute names', async () => {
    const directory = await one()
    const attributes = Attributes.from([
      ['__proto__', ['p']],
      ['constructor', ['c']],
    ])
    await createUser(directory, { userID: '__proto__', attributes, groups: ['constructor'] })
    expect((await directory.lookupUserByLogin('__PROTO__'))?.attributes.values('__proto__')).toEqual(['p'])
    expect((await directory.lookupGroupByName('constructor'))?.members).toEqual(['__proto__'])
  })
})
