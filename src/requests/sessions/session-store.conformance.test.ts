import { expect, test } from 'vitest'
import { entryIdentity, type Identity } from '#identity/identity.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { auditRow } from '#testing/databases/workflow-stores.ts'
import { type EndedSession, type Session, touchEverySeconds } from './session.ts'
import { maxSessionsPerUser } from './session-store.ts'

const start = Date.UTC(2030, 0, 1)
const [alice, bob] = [entryIdentity('people', 'a'), entryIdentity('people', 'b')]
const after = (seconds: number): Date => new Date(start + seconds * 1000)

function session(id: string, more: Partial<Session> = {}): Session {
  const made = after(0)
  return {
    id,
    publicId: `public-${id}`,
    context: 'portal.test',
    application: 'portal',
    owner: alice,
    userID: 'alice',
    data: {},
    created: made,
    touched: made,
    idleSeconds: 600,
    ...more,
  }
}

onEachDatabase('sessions', (freshUrl) => {
  const open = async () => (await openStores(await freshUrl())).one.sessions

  test('returns a session as it was created', async () => {
    const store = await open()
    const whole = session('a', { data: { list: ['x', { y: 1 }], nul: '\0', half: '\ud800' }, ends: after(3600) })
    await store.create(whole)
    expect(await store.find('a', after(1))).toEqual(whole)
    expect(await store.find('b', after(1))).toBeUndefined()
  })

  test('the fingerprint of a user changes when a session begins, ends or expires, and with nothing else', async () => {
    const store = await open()
    const of = async (owner: Identity, seconds = 1) =>
      (await store.fingerprints([alice, bob], after(seconds))).get(owner)
    expect(await of(alice)).toBeUndefined()
    await store.create(session('a'))
    const one = await of(alice)
    expect(one).toEqual(expect.any(String))
    expect(await of(bob)).toBeUndefined()
    await store.touch(session('a'), after(60))
    await store.create(session('b', { owner: bob, userID: 'bob' }))
    expect(await of(alice)).toBe(one)
    await store.create(session('c', { created: after(2), touched: after(2) }))
    const two = await of(alice)
    expect(two).not.toBe(one)
    await store.delete('a')
    await store.create(session('d', { created: after(3), touched: after(3) }))
    expect(await of(alice)).not.toBe(two)
    expect(await of(alice, 601)).not.toBe(await of(alice, 603))
    expect(await of(alice, 700)).toBeUndefined()
    expect(await store.fingerprints([], after(1))).toEqual(new Map())
  })

  test('distinguishes ids by letter case', async () => {
    const store = await open()
    await store.create(session('a', { userID: 'lower' }))
    await store.create(session('A', { userID: 'upper' }))
    expect((await store.find('A', after(1)))?.userID).toBe('upper')
    expect((await store.find('a', after(1)))?.userID).toBe('lower')
  })

  test('rejects an id that exists', async () => {
    const store = await open()
    await store.create(session('a'))
    await expect(store.create(session('a'))).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('limits the sessions of a user, removing those that were never used again first', async () => {
    const store = await open()
    await store.create(session('other', { owner: bob }))
    await store.create(session('used'))
    await store.touch(session('used'), after(100))
    const made = (i: number) => session(`s${i}`, { created: after(200 + i / 10), touched: after(200 + i / 10) })
    for (let i = 0; i < maxSessionsPerUser - 1; i += 111) {
      await Promise.all(Array.from({ length: 111 }, (_, j) => store.create(made(i + j))))
    }
    const now = after(400)
    expect(await store.find('s0', now)).toBeDefined()
    await store.create({ ...made(maxSessionsPerUser), userID: 'other login' })
    const found = await Promise.all(['s0', 's500', 'used', 'other'].map((id) => store.find(id, now)))
    expect(found.map((one) => one?.id)).toEqual([undefined, 's500', 'used', 'other'])
  })

  test('does not return an expired session that is not deleted yet', async () => {
    const store = await open()
    await store.create(session('idle'))
    await store.create(session('ended', { ends: after(60) }))
    expect(await store.find('idle', after(599))).toBeDefined()
    expect(await store.find('idle', after(600))).toBeUndefined()
    expect(await store.find('ended', after(60))).toBeUndefined()
    expect(await store.update('ended', after(61), () => ({ data: {}, idleSeconds: 9999 }))).toBeUndefined()
  })

  test('use postpones the expiry, but not beyond the end', async () => {
    const store = await open()
    await store.create(session('a', { ends: after(1000) }))
    await store.touch(session('a', { ends: after(1000) }), after(500))
    expect((await store.find('a', after(700)))?.touched).toEqual(after(500))
    await store.touch(session('a', { ends: after(1000), touched: after(500) }), after(900))
    expect(await store.find('a', after(999))).toBeDefined()
    expect(await store.find('a', after(1000))).toBeUndefined()
  })

  test('writes use at intervals only', async () => {
    const store = await open()
    const fresh = session('a')
    await store.create(fresh)
    await store.touch(fresh, after(touchEverySeconds - 1))
    expect((await store.find('a', after(touchEverySeconds)))?.touched).toEqual(after(0))
    await store.touch(fresh, after(touchEverySeconds))
    expect((await store.find('a', after(touchEverySeconds)))?.touched).toEqual(after(touchEverySeconds))
  })

  test('use does not restore an expired or deleted session', async () => {
    const store = await open()
    await store.create(session('expired'))
    await store.touch(session('expired'), after(700))
    expect(await store.find('expired', after(701))).toBeUndefined()
    await store.create(session('deleted'))
    await store.delete('deleted')
    await store.touch(session('deleted'), after(100))
    expect(await store.find('deleted', after(101))).toBeUndefined()
  })

  test('applies fifty concurrent updates', async () => {
    const store = await open()
    await store.create(session('a', { data: { count: 0 } }))
    const add = (old: Session) => ({ data: { count: Number(old.data['count']) + 1 }, idleSeconds: old.idleSeconds })
    await Promise.all(Array.from({ length: 50 }, () => store.update('a', after(1), add)))
    expect((await store.find('a', after(1)))?.data).toEqual({ count: 50 })
  })

  test('changes nothing when an update throws', async () => {
    const store = await open()
    await store.create(session('a', { data: { kept: true } }))
    const fail = (): never => {
      throw new RangeError('no')
    }
    await expect(store.update('a', after(1), fail)).rejects.toThrow(RangeError)
    expect((await store.find('a', after(1)))?.data).toEqual({ kept: true })
  })

  test('ends all sessions of a user, under any of their logins', async () => {
    const store = await open()
    await store.create(session('a', { userID: 'Alice', application: 'one' }))
    await store.create(session('b', { userID: 'alice', application: 'two' }))
    await store.create(session('c', { owner: bob }))
    expect(await store.deleteOfOwner(alice)).toBe(2)
    expect(await store.find('a', after(1))).toBeUndefined()
    expect(await store.find('c', after(1))).toBeDefined()
  })

  test('ends all sessions of a user but one', async () => {
    const store = await open()
    for (const id of ['a', 'b', 'c']) await store.create(session(id))
    expect(await store.deleteOfOwner(alice, 'public-b')).toBe(2)
    expect(await store.find('b', after(1))).toBeDefined()
  })

  test('finds and ends a session by its public id, for its owner only', async () => {
    const store = await open()
    await store.create(session('a', { userID: 'Alice' }))
    expect(await store.findPublic('public-a', after(1))).toMatchObject({ id: 'a' })
    expect(await store.findPublic('public-a', after(600))).toBeUndefined()
    expect(await store.findPublic('\0', after(1))).toBeUndefined()
    expect(await store.deletePublic(bob, 'public-a')).toBe(false)
    expect(await store.deletePublic(alice, 'public-a')).toBe(true)
    expect(await store.find('a', after(1))).toBeUndefined()
  })

  test('ends one session or all of a user with audit entries, and leaves expired ones', async () => {
    const { sessions: store, audit } = (await openStores(await freshUrl())).one
    await store.create(session('old', { idleSeconds: 10 }))
    for (const id of ['a', 'b', 'c']) await store.create(session(id))
    await store.create(session('other', { owner: bob }))
    const rows = (ended: readonly EndedSession[]) => ended.map(({ publicId }) => auditRow(publicId))
    const end = (owner: Identity, publicId?: string) => store.endAudited(owner, publicId, after(11), rows)
    expect(await end(bob, 'public-a')).toBe(0)
    expect(await end(alice, '\0')).toBe(0)
    expect(await end(alice, 'public-old')).toBe(0)
    expect(await end(alice, 'public-a')).toBe(1)
    expect(await end(alice)).toBe(2)
    expect(await end(alice)).toBe(0)
    expect(await store.find('other', after(11))).toBeDefined()
    const written = (await audit.list({ limit: 10 })).rows.map(({ id }) => id).sort()
    expect(written).toEqual(['public-a', 'public-b', 'public-c'])
  })

  test('lists the sessions of a user, latest first, without expired ones', async () => {
    const store = await open()
    await store.create(session('old', { idleSeconds: 10 }))
    await store.create(session('a', { created: after(1) }))
    await store.create(session('b', { created: after(2), userID: 'ALICE' }))
    await store.create(session('c', { owner: bob }))
    expect((await store.ofOwner(alice, after(11))).map(({ id }) => id)).toEqual(['b', 'a'])
  })

  test('replaces a session by another in one commit', async () => {
    const store = await open()
    await store.create(session('a'))
    await store.create(session('b', { publicId: 'public-a' }), 'a')
    expect(await store.find('a', after(1))).toBeUndefined()
    expect(await store.findPublic('public-a', after(1))).toMatchObject({ id: 'b' })
    await expect(store.create(session('b'), 'b-not-there')).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('ends the sessions with a mark, also after a step-up, and no others', async () => {
    const store = await open()
    await store.create(session('a'))
    await store.create(session('other'))
    await store.mark('public-a', 'sid', after(3600))
    await store.mark('public-a', 'sid', after(3600))
    await store.create(session('b', { publicId: 'public-a' }), 'a')
    expect(await store.deleteMarked('none')).toBe(0)
    expect(await store.deleteMarked('sid')).toBe(1)
    expect(await store.find('b', after(1))).toBeUndefined()
    expect(await store.find('other', after(1))).toBeDefined()
    await store.create(session('c', { publicId: 'public-a' }))
    expect(await store.deleteMarked('sid')).toBe(0)
  })

  test('deletes all expired sessions and no others', async () => {
    const store = await open()
    for (let i = 0; i < 1100; i += 100) {
      await Promise.all(
        Array.from({ length: 100 }, (_, j) =>
          store.create(session(`s${i + j}`, { idleSeconds: 10, owner: entryIdentity('people', `${j}`) })),
        ),
      )
    }
    await store.create(session('live'))
    expect(await store.deleteExpired(after(10))).toBe(1100)
    expect(await store.deleteExpired(after(10))).toBe(0)
    expect(await store.find('live', after(10))).toBeDefined()
  })

  test('returns whether a session was deleted', async () => {
    const store = await open()
    await store.create(session('a'))
    expect(await store.delete('a')).toBe(true)
    expect(await store.delete('a')).toBe(false)
  })

  test("rejects text that can't be stored, and does not find it", async () => {
    const store = await open()
    await expect(store.create(session('a', { userID: 'a\0b' }))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(await store.find('a\0', after(1))).toBeUndefined()
    expect(await store.delete('\ud800')).toBe(false)
  })
})
