import { expect, test } from 'vitest'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import type { NewInvitation } from './registration-store.ts'

const hour = 3600_000
const inAnHour = () => new Date(Date.now() + hour)
const mail = (id: string) => ({ id, recipient: 'ada@example.com', subject: 's', text: 't' })

const row = (id: string): AuditEntry => ({
  id,
  time: new Date(),
  requestor: 'boss',
  subject: 'ada@example.com',
  workflow: { id: 'i1', name: 'invitation' },
  target: 'register',
  kind: 'entry',
  action: 'add',
  attribute: 'invitation',
})

const invitation = (id: string, more: Partial<NewInvitation> = {}): NewInvitation => ({
  id,
  form: 'register',
  tokenHash: `hash-${id}`,
  email: 'ada@example.com',
  attributes: { team: 'blue' },
  invitedBy: 'boss',
  created: new Date(1_900_000_000_000),
  expires: inAnHour(),
  ...more,
})

onEachDatabase('registrations', (freshUrl) => {
  const open = async () => {
    const { one, two } = await openStores(await freshUrl())
    return [one, two] as const
  }

  test('gives a value to one of many concurrent callers', async () => {
    const stores = await open()
    const taken = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        stores[(i % 2) as 0 | 1].registrations.reserve(`owner-${i}`, ['login'], hour),
      ),
    )
    expect(taken.filter((keys) => keys.length === 0)).toHaveLength(1)
    expect(taken.filter((keys) => keys[0] === 'login')).toHaveLength(199)
  })

  test('reserves all values or none', async () => {
    const [{ registrations }] = await open()
    expect(await registrations.reserve('a', ['x'], hour)).toEqual([])
    expect(await registrations.reserve('b', ['w', 'x', 'y'], hour)).toEqual(['x'])
    expect(await registrations.reserve('c', ['w', 'y'], hour)).toEqual([])
    expect(await registrations.reserve('d', [], hour)).toEqual([])
  })

  test('does not deadlock when callers reserve the same values in another order', async () => {
    const stores = await open()
    const keys = ['a', 'b', 'c', 'd']
    const got = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        stores[(i % 2) as 0 | 1].registrations.reserve(`o${i}`, i % 3 === 0 ? keys : keys.toReversed(), hour),
      ),
    )
    expect(got.filter((taken) => taken.length === 0)).toHaveLength(1)
  })

  test('lets an owner reserve again and release', async () => {
    const [{ registrations }] = await open()
    await registrations.reserve('a', ['x'], hour)
    expect(await registrations.reserve('a', ['x', 'y'], hour)).toEqual([])
    await registrations.release('a')
    expect(await registrations.reserve('b', ['x', 'y'], hour)).toEqual([])
  })

  test('keeps values that are reserved for a run when the same owner releases', async () => {
    const [{ registrations }] = await open()
    await registrations.reserve('a', ['x'], hour)
    await registrations.holdForRun('a', 'run', hour)
    await registrations.release('a')
    expect(await registrations.reserve('b', ['x'], hour)).toEqual(['x'])
  })

  test('deletes expired reservations', async () => {
    const [{ registrations }] = await open()
    await registrations.reserve('a', ['x'], -1)
    await registrations.reserve('c', ['y'], hour)
    expect(await registrations.reserve('b', ['x'], -1)).toEqual([])
    expect(await registrations.deleteExpired()).toBe(1)
    expect(await registrations.reserve('b', ['y'], hour)).toEqual(['y'])
    await registrations.holdForRun('c', 'no-such-run', -1)
    expect(await registrations.reserve('b', ['y'], hour)).toEqual([])
  })

  test('stores a pending registration with its mail, and finds it by form and secret only', async () => {
    const [{ registrations, mails }, other] = await open()
    const pending = { id: 'p', form: 'register', tokenHash: 'h', sealed: 'g1.x', expires: inAnHour() }
    await registrations.addPending(pending, [mail('m1')])
    expect(await other.registrations.findPending('register', 'h')).toEqual(pending)
    expect(await registrations.findPending('other', 'h')).toBeUndefined()
    expect(await registrations.findPending('register', 'H')).toBeUndefined()
    expect(await registrations.findPending('register', 'h\0')).toBeUndefined()
    expect((await mails.get('m1'))?.state).toBe('queued')
    await registrations.removePending('p')
    expect(await registrations.findPending('register', 'h')).toBeUndefined()
  })

  test('does not return an expired registration, and adds no mail for a rejected one', async () => {
    const [{ registrations, mails }] = await open()
    const pending = { id: 'p', form: 'register', tokenHash: 'h', sealed: 'x', expires: new Date(Date.now() - 1000) }
    await registrations.addPending(pending, [])
    expect(await registrations.findPending('register', 'h')).toBeUndefined()
    await expect(registrations.addPending(pending, [mail('m2')])).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await mails.get('m2')).toBeUndefined()
    expect(await registrations.deleteExpired()).toBe(1)
  })

  test('stores an invitation with its mail and audit rows', async () => {
    const [{ registrations, mails, audit }] = await open()
    const { tokenHash, ...whole } = invitation('i1')
    await registrations.addInvitation({ ...whole, tokenHash }, [mail('m')], [row('r')])
    const stored = { ...whole, state: 'open', sent: 1 }
    expect(await registrations.getInvitation('register', 'i1')).toEqual(stored)
    expect(await registrations.findInvitation('register', tokenHash)).toEqual(stored)
    expect(await registrations.findInvitation('other', tokenHash)).toBeUndefined()
    expect(await registrations.getInvitation('other', 'i1')).toBeUndefined()
    expect(await mails.get('m')).toBeDefined()
    expect((await audit.list({ subject: 'ada@example.com', limit: 5 })).rows).toHaveLength(1)
  })

  test('accepts an invitation once for concurrent callers', async () => {
    const stores = await open()
    await stores[0].registrations.addInvitation(invitation('i1'), [], [])
    const moved = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        stores[(i % 2) as 0 | 1].registrations.moveInvitation('i1', 'open', 'accepted', []),
      ),
    )
    expect(moved.filter(Boolean)).toHaveLength(1)
    expect((await stores[0].registrations.getInvitation('register', 'i1'))?.state).toBe('accepted')
    expect(await stores[0].registrations.moveInvitation('i1', 'open', 'revoked', [row('r')])).toBe(false)
    expect((await stores[0].audit.list({ limit: 5 })).rows).toEqual([])
    expect(await stores[0].registrations.moveInvitation('i1', 'accepted', 'open', [])).toBe(true)
  })

  test('replaces the secret of an open invitation only', async () => {
    const [{ registrations, mails }] = await open()
    await registrations.addInvitation(invitation('i1', { expires: new Date(Date.now() - 1000) }), [], [])
    expect(await registrations.findInvitation('register', 'hash-i1')).toBeUndefined()
    const renewal = { id: 'i1', tokenHash: 'new', expires: inAnHour() }
    expect(await registrations.renewInvitation(renewal, [mail('m')], [])).toBe(true)
    expect((await registrations.findInvitation('register', 'new'))?.sent).toBe(2)
    expect(await registrations.findInvitation('register', 'hash-i1')).toBeUndefined()
    await registrations.moveInvitation('i1', 'open', 'revoked', [])
    expect(await registrations.renewInvitation({ ...renewal, tokenHash: 'x' }, [mail('m2')], [])).toBe(false)
    expect(await mails.get('m2')).toBeUndefined()
  })

  test('lists invitations by form, latest first, in pages', async () => {
    const [{ registrations }] = await open()
    for (const id of ['a', 'b', 'c']) await registrations.addInvitation(invitation(id), [], [])
    await registrations.addInvitation(invitation('z', { form: 'other' }), [], [])
    const page = await registrations.listInvitations({ form: 'register', limit: 2 })
    expect(page.invitations.map(({ id }) => id)).toEqual(['c', 'b'])
    const rest = await registrations.listInvitations({ form: 'register', limit: 2, after: page.next ?? '' })
    expect(rest).toMatchObject({ invitations: [{ id: 'a' }] })
    expect(rest.next).toBeUndefined()
  })
})
