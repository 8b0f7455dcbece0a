import { beforeEach, describe, expect, test } from 'vitest'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { syncOptions, userOf } from '#sdk/conformance/target-fixture.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import { inQueue, reconcileUsers, type StoredUser, type UserStore } from './user-reconciler.ts'

/** Users by login in lower case. */
let users: Map<string, User>
let calls: string[]
let changes: string[]

const store = (): UserStore<StoredUser> => ({
  renames: true,
  read: async (userID) => {
    calls.push(`read ${userID}`)
    const user = users.get(userID.toLowerCase())
    return user && { user }
  },
  create: async (user, call) => {
    users.set(user.userID.toLowerCase(), { ...user, version: '1' })
    return call.changes
  },
  write: async ({ user }, wanted, call) => {
    users.delete(user.userID.toLowerCase())
    users.set(wanted.userID.toLowerCase(), { ...wanted, version: String(Number(user.version) + 1) })
    return call.changes
  },
  delete: async ({ user }, call) => {
    users.delete(user.userID.toLowerCase())
    return call.changes
  },
})

const request = {
  workflow: { id: 'w', name: 'join' },
  idempotencyKey: 'step',
  requestor: 'eve',
  params: {},
  log: silentLogger,
  audit: ({ action, attribute, value }: TargetChange) => void changes.push(`${action} ${attribute} ${value}`),
}
const open = (more: Partial<UserStore<StoredUser>> = {}) => reconcileUsers(inQueue({ ...store(), ...more }))
const ada = (mail: string[] = ['a'], groups: string[] = []) => userOf('ada', { mail }, groups)
const mailOf = (userID: string) => users.get(userID)?.attributes.values('mail')

beforeEach(() => {
  users = new Map()
  calls = []
  changes = []
})

describe('another order of the same values', () => {
  const sync = (opened: ReturnType<typeof open>, mail: string[]) =>
    opened.syncUser(ada(mail), syncOptions(['mail']), request)

  test('is written once and reported', async () => {
    users.set('ada', ada(['a', 'b']))
    const opened = open()
    await sync(opened, ['b', 'a'])
    await sync(opened, ['b', 'a', 'b'])
    expect([changes, mailOf('ada')]).toEqual([['replace mail b'], ['b', 'a']])
  })

  test('is no change where the system decides the order, and is not written again', async () => {
    users.set('ada', ada(['a', 'b']))
    let writes = 0
    const sorting = open({
      write: async (_, wanted, call) => {
        writes++
        const mail = wanted.attributes.values('mail').toSorted()
        users.set('ada', ada(mail))
        for (const change of call.changes) call.request.audit(change)
        return []
      },
    })
    await sync(sorting, ['b', 'a'])
    await sync(sorting, ['b', 'a'])
    expect([changes, mailOf('ada'), writes]).toEqual([[], ['a', 'b'], 1])
    await sync(sorting, ['c', 'b', 'a'])
    expect([changes, writes]).toEqual([['add mail c'], 2])
  })

  test('counts as written if the system cannot be read afterwards', async () => {
    users.set('ada', ada(['a', 'b']))
    let reads = 0
    const silent = open({
      read: async () => {
        if (++reads === 2) throw new GatewayError('TARGET_UNREACHABLE', 'away')
        return { user: ada(['a', 'b']) }
      },
    })
    await sync(silent, ['b', 'a'])
    expect(changes).toEqual(['replace mail b'])
  })
})

describe('create', () => {
  test('writes and reports the listed attributes, and nothing the second time', async () => {
    await open().createUser(userOf('ada', { mail: ['a'], phone: ['1'] }, ['crew']), ['mail'], request)
    await open().createUser(ada(['a'], ['crew']), ['mail'], request)
    expect(changes).toEqual(['add userID ada', 'add mail a', 'add groups crew'])
    expect(users.get('ada')?.attributes.names()).toEqual(['mail'])
  })

  test('is a conflict for another user, another spelling, and an equal user that must be new', async () => {
    const { createUser } = open()
    await createUser(ada(), ['mail'], request)
    for (const [user, options] of [
      [ada(['b']), {}],
      [userOf('ADA', { mail: ['a'] }), {}],
      [ada(), { mustBeNew: true }],
    ] as const) {
      await expect(createUser(user, ['mail'], request, options)).rejects.toMatchObject({ code: 'CONFLICT' })
    }
    expect(mailOf('ada')).toEqual(['a'])
  })

  test('looks for other spellings only if the target requires it and the user must be new', async () => {
    await open({ looksForSpellings: true }).createUser(userOf('ＡＤＡ'), [], request)
    expect(calls).toEqual(['read ＡＤＡ'])
    calls.length = 0
    await open({ looksForSpellings: true }).createUser(userOf('Ａlan'), [], request, { mustBeNew: true })
    expect(calls).toContain('read alan')
  })

  test('succeeds when another writer created the same user at the same time', async () => {
    const create = async (user: User): Promise<never> => {
      users.set('ada', user)
      throw new GatewayError('CONFLICT', 'taken')
    }
    await expect(open({ create }).createUser(ada(), ['mail'], request)).rejects.toMatchObject({ code: 'CONFLICT' })
    users.clear()
    await open({ create, rereadsConflicts: true }).createUser(ada(), ['mail'], request)
    users.clear()
    const target = open({ create, rereadsConflicts: true })
    await expect(target.createUser(ada(), ['mail'], request, { mustBeNew: true })).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    expect(changes).toEqual([])
  })

  test('finishes an earlier attempt, if the target recognizes it', async () => {
    users.set('ada', ada())
    const finish: UserStore<StoredUser>['finish'] = (_, missing) =>
      missing.every(({ subject }) => subject === 'group') ? Promise.resolve(missing) : undefined
    await open({ finish }).createUser(ada(['a'], ['crew']), ['mail'], request)
    expect(changes).toEqual(['add groups crew'])
    await expect(open({ finish }).createUser(ada(['b']), ['mail'], request)).rejects.toMatchObject({ code: 'CONFLICT' })
  })
})

describe('sync', () => {
  beforeEach(() => {
    users.set('ada', { ...ada(['a'], ['crew']), version: '1' })
  })

  test('writes the differences, and nothing if there are none', async () => {
    await open().syncUser(ada(['b'], ['crew']), syncOptions(['mail']), request)
    await open().syncUser(ada(['b'], ['crew']), syncOptions(['mail']), request)
    expect(changes).toEqual(['replace mail b'])
    expect(users.get('ada')?.version).toBe('2')
  })

  test('adds only, and keeps groups', async () => {
    await open().syncUser(ada(['b'], ['team']), syncOptions(['mail'], { addOnly: true }), request)
    expect(mailOf('ada')).toEqual(['a', 'b'])
    expect(users.get('ada')?.groups).toEqual(['crew', 'team'])
    await open().syncUser(ada(['b'], []), syncOptions(['mail'], { keepGroups: true }), request)
    expect(users.get('ada')?.groups).toEqual(['crew', 'team'])
  })

  test('checks the version, also of a deleted user', async () => {
    const expecting = (expectedVersion: string) => ({ ...syncOptions(['mail']), expectedVersion })
    await expect(open().syncUser(ada(['b']), expecting('7'), request)).rejects.toMatchObject({
      code: 'VERSION_MISMATCH',
    })
    users.clear()
    await expect(open().syncUser(ada(['b']), expecting('1'), request)).rejects.toMatchObject({
      code: 'VERSION_MISMATCH',
    })
    await expect(open().syncUser(ada(['b']), syncOptions(['mail']), request)).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
  })

  test('renames to a free login, if the target supports it', async () => {
    const renaming = (newUserID: string) => ({ ...syncOptions([], { keepGroups: true }), newUserID })
    users.set('bob', userOf('bob'))
    await expect(open().syncUser(ada(), renaming('bob'), request)).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(open({ renames: false }).syncUser(ada(), renaming('eve'), request)).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
    })
    await open().syncUser(ada(), renaming('ADA'), request)
    await open().syncUser(ada(), renaming('eve'), request)
    expect([...users.keys()].sort()).toEqual(['bob', 'eve'])
    expect(changes).toEqual(['replace userID ADA', 'replace userID eve'])
  })
})

test('delete is idempotent, checks the version and cleans up', async () => {
  const cleaned: string[] = []
  const target = open({ cleanUp: async ({ userID }) => void cleaned.push(userID) })
  users.set('ada', { ...ada(), version: '1' })
  await expect(target.deleteUser(ada(), request, { expectedVersion: '2' })).rejects.toMatchObject({
    code: 'VERSION_MISMATCH',
  })
  await target.deleteUser(ada(), request, { expectedVersion: '1' })
  await target.deleteUser(ada(), request)
  expect(changes).toEqual(['delete userID ada'])
  expect(cleaned).toEqual(['ada'])
})
