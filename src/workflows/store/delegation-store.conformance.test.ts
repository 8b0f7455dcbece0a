import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { auditRow, minute } from '#testing/databases/workflow-stores.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import type { Delegation } from './delegation-store.ts'

const inMinutes = (minutes: number): Date => new Date(Date.now() + minutes * minute)

const delegation = (id: string, more: Partial<Delegation> = {}): Delegation => ({
  id,
  user: userRef('Boss'),
  deputy: userRef('Deputy'),
  starts: inMinutes(-60),
  ends: inMinutes(60),
  ...more,
})

onEachDatabase('delegations', (freshUrl) => {
  const open = async () => openStores(await freshUrl())

  test('finds deputies and the users they represent during the period', async () => {
    const { one, two } = await open()
    const present = delegation('a')
    const future = delegation('b', { deputy: userRef('later'), starts: inMinutes(60), ends: inMinutes(120) })
    const past = delegation('c', { deputy: userRef('earlier'), starts: inMinutes(-120), ends: inMinutes(-60) })
    for (const each of [future, present, past]) await one.delegations.add(each)
    expect(await two.delegations.deputiesOf(userRef('BOSS'))).toEqual([userRef('Deputy')])
    expect(await two.delegations.representedBy(userRef('deputy'))).toEqual([userRef('Boss')])
    expect(await two.delegations.representedBy(userRef('later'))).toEqual([])
    expect(await two.delegations.representedBy(userRef('earlier'))).toEqual([])
    expect(await two.delegations.listOf(userRef('boss'))).toEqual([present, future])
    expect(await two.delegations.deputiesOf(userRef('\0'))).toEqual([])
  })

  test('writes a delegation and its audit rows in one transaction', async () => {
    const { one } = await open()
    await one.delegations.add(delegation('a'), [auditRow('added')])
    await expect(one.delegations.add(delegation('a'), [auditRow('twice')])).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await one.delegations.remove(userRef('deputy'), 'a', [auditRow('not mine')])).toBe(false)
    expect(await one.delegations.remove(userRef('boss'), 'a', [auditRow('removed')])).toBe(true)
    expect((await one.audit.list({ limit: 9 })).rows.map(({ id }) => id).sort()).toEqual(['added', 'removed'])
  })

  test('removes a delegation for its owner only', async () => {
    const { one } = await open()
    await one.delegations.add(delegation('a'))
    expect(await one.delegations.remove(userRef('deputy'), 'a')).toBe(false)
    expect(await one.delegations.remove(userRef('boss'), 'a')).toBe(true)
    expect(await one.delegations.remove(userRef('boss'), 'a')).toBe(false)
    expect(await one.delegations.deputiesOf(userRef('boss'))).toEqual([])
  })

  test('rejects invalid delegations', async () => {
    const { one } = await open()
    await one.delegations.add(delegation('a'))
    await expect(one.delegations.add(delegation('a'))).rejects.toMatchObject({ code: 'CONFLICT' })
    const wrong = [
      { ends: inMinutes(-61) },
      { ends: new Date(Number.NaN) },
      { deputy: { ...userRef('a'), login: 'a\0' } },
    ]
    for (const more of wrong) {
      await expect(one.delegations.add(delegation('b', more))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
  })
})
