import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Leases } from '#protocols/ldap/leases.ts'

const refusal = (reason: string) => new Error(reason)

test('never more than are allowed, in their order, and places come back after failures', async () => {
  const leases = new Leases(2, 1000, refusal)
  let now = 0
  let most = 0
  const order: number[] = []
  const work = async (i: number) => {
    order.push(i)
    most = Math.max(most, ++now)
    await delay(1)
    now--
    if (i % 3 === 0) throw new Error('failed')
  }
  await Promise.allSettled(Array.from({ length: 30 }, (_, i) => leases.run(() => work(i))))
  expect(most).toBe(2)
  expect(order).toEqual(Array.from({ length: 30 }, (_, i) => i))
})

test('whoever waits too long, or behind too many, is refused; the others are not', async () => {
  const leases = new Leases(1, 50, refusal)
  const first = leases.run(() => delay(150))
  const waiting = Array.from({ length: 1000 }, () => leases.run(async () => {}).catch((error: Error) => error.message))
  await expect(leases.run(async () => {})).rejects.toThrow('too many calls are waiting')
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['no free connection in 50 ms']))
  await first
  expect(await leases.run(async () => 'free')).toBe('free')
})
