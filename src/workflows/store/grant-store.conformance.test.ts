import { expect, test } from 'vitest'
import type { NewGrant } from '#sdk/workflow/grant.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { minute, newRun, noLease, outcomes } from '#testing/databases/workflow-stores.ts'

const grant = (id: string, more: Partial<NewGrant> = {}): NewGrant => ({
  id,
  target: 'people',
  subject: 'Bob',
  kind: 'group',
  name: 'admins',
  expires: { inMillis: noLease },
  ...more,
})

const ids = (grants: readonly { readonly id: string }[]): string[] => grants.map(({ id }) => id)

onEachDatabase('grants', (freshUrl) => {
  const open = async () => openStores(await freshUrl())

  test('returns a grant as it was added, and as due after its expiry', async () => {
    const { one, two } = await open()
    const ends = new Date(Date.now() + minute)
    await one.grants.add([grant('a', { run: 'r' }), grant('b', { name: 'users', expires: { at: ends } })])
    expect(await two.grants.get('b')).toMatchObject({
      ...grant('b', { name: 'users' }),
      state: 'active',
      expires: ends,
    })
    expect(ids(await two.grants.due(10))).toEqual(['a'])
    expect(ids(await two.grants.ofSubject('bob'))).toEqual(['a', 'b'])
    expect(await two.grants.ofSubject('\0')).toEqual([])
    expect(await two.grants.get('x')).toBeUndefined()
  })

  test('keeps one grant of the same access, until the later expiry', async () => {
    const { one, two } = await open()
    await one.grants.add([grant('a')])
    const ends = new Date(Date.now() + 5 * minute)
    await two.grants.add([grant('b', { subject: 'BOB', expires: { at: ends } }), grant('c')])
    expect(ids(await one.grants.ofSubject('bob'))).toEqual(['a'])
    expect((await one.grants.get('a'))?.expires).toEqual(ends)
    await Promise.all([one, two, one].map(({ grants }, i) => grants.add([grant(`${i}`, { name: 'many' })])))
    expect(await one.grants.ofSubject('bob')).toHaveLength(2)
  })

  test('extends a grant and never shortens it', async () => {
    const { one } = await open()
    const later = new Date(Date.now() + 5 * minute)
    await one.grants.add([grant('a')])
    expect((await one.grants.extend('a', { at: later }))?.expires).toEqual(later)
    expect((await one.grants.extend('a', { inMillis: 0 }))?.expires).toEqual(later)
    expect(await one.grants.due(10)).toEqual([])
    expect(await one.grants.extend('x', { at: later })).toBeUndefined()
  })

  test('revokes a grant once, with the run that removes the access', async () => {
    const { one, two } = await open()
    await one.grants.add([grant('a')])
    const revokes = [{ grant: 'a', onlyDue: true }]
    const tries = Array.from({ length: 6 }, (_, i) =>
      (i % 2 === 0 ? one : two).runs.start(newRun(`revoke-${i}`), { effects: { revokes } }),
    )
    const { done, refused } = outcomes(await Promise.allSettled(tries))
    expect({ done, refused: [...new Set(refused)] }).toEqual({ done: 1, refused: ['CONFLICT'] })
    expect(await one.runs.claim('w', 10, minute)).toHaveLength(1)
    expect(await one.grants.get('a')).toMatchObject({ state: 'revoked' })
    expect(await one.grants.extend('a', { inMillis: minute })).toBeUndefined()
    expect(await one.grants.revoke({ grant: 'a', onlyDue: false })).toBeUndefined()
    await one.grants.add([grant('again')])
    expect(ids(await one.grants.ofSubject('bob'))).toEqual(['again'])
  })

  test('revokes an extended grant only if it need not be due', async () => {
    const { one } = await open()
    await one.grants.add([grant('a')])
    await one.grants.extend('a', { inMillis: minute })
    expect(await one.grants.revoke({ grant: 'a', onlyDue: true })).toBeUndefined()
    expect(await one.grants.revoke({ grant: 'a', onlyDue: false })).toMatchObject({ id: 'a', state: 'revoked' })
  })
})
